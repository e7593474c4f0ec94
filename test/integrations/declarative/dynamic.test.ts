import { Agent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { manifest } from "./one-stream.ts";

const mapped = (field_path: string[], value: string) => ({ type: "ComponentMappingDefinition", field_path, value });

test("streams are made of each choice with each of the others; what is written as JSON or YAML is what it means", async () => {
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const whole = JSON.parse(manifest("https://api.test"));
  const [stream_template] = whole.streams;
  const components_resolver = {
    type: "ConfigComponentsResolver",
    stream_config: [
      { type: "StreamConfig", configs_pointer: ["reports"] },
      { type: "StreamConfig", configs_pointer: ["regions"] },
    ],
    components_mapping: [
      mapped(["name"], "{{ components_values.name }}-{{ components_values.source_config_1[1] }}"),
      mapped(["schema_loader", "schema"], "{{ components_values.schema | tojson }}"),
      mapped(["primary_key"], "- id\n- day"),
    ],
  };
  const source = JSON.stringify({
    ...{ ...whole, streams: undefined },
    dynamic_streams: [{ type: "DynamicDeclarativeStream", stream_template, components_resolver }],
  });
  const reports = ["a", "b"].map((name) => ({ name, schema: { type: "object", additionalProperties: true } }));
  const connector = createConnector(source, { config: { reports, regions: ["eu", "us"] }, dispatcher });
  const streams = await connector.streams();
  expect(streams.map(({ name }) => name)).toEqual(["a-eu", "a-us", "b-eu", "b-us"]);
  expect(streams[0]?.primaryKey).toEqual([["id"], ["day"]]);
  expect(await streams[0]?.schema()).toEqual(reports[0]?.schema);
});
