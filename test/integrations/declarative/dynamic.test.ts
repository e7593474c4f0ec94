import { Agent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { json, manifest, vendor } from "./one-stream.ts";

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

test("what the vendor lists is asked for in every slice, which names and paths may show; a path that is not there is not made", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [{ id: 1 }, { id: 2 }] });
  });
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const whole = JSON.parse(manifest(origin));
  const [stream_template] = whole.streams;
  const { retriever } = JSON.parse(manifest(origin, { requester: { path: "/list/{{ stream_slice.site }}" } }))
    .streams[0];
  const components_resolver = {
    type: "HttpComponentsResolver",
    retriever: {
      ...retriever,
      partition_router: { type: "ListPartitionRouter", values: ["eu", "us"], cursor_field: "site" },
    },
    components_mapping: [
      mapped(["name"], "{{ stream_template_config.name }}_{{ stream_slice['site'] }}_{{ components_values.id }}"),
      mapped(["retriever", "requester", "path"], "/{{ stream_slice['site'] }}/{{ components_values.id }}"),
      mapped(["retriever", "nowhere"], "x"),
      { ...mapped(["retriever", "requester", "request_headers"], "{{ {'a': 'b'} }}"), create_or_update: true },
    ],
  };
  const dynamic_streams = [{ type: "DynamicDeclarativeStream", stream_template, components_resolver }];
  const source = JSON.stringify({ ...whole, streams: undefined, dynamic_streams });
  const connector = createConnector(source, { config: {}, dispatcher });
  const streams = await connector.streams();
  expect(streams.map(({ name }) => name)).toEqual(["items_eu_1", "items_eu_2", "items_us_1", "items_us_2"]);
  for await (const _ of streams[2]?.read() ?? []);
  expect(asked).toEqual(["/list/eu", "/list/us", "/us/1"]);
});

test("parameters that a mapping sets reach the template's parts, an outer one before an inner one; a path may be a pattern", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [{ id: 1 }] });
  });
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const [written] = JSON.parse(manifest(origin)).streams;
  const { requester } = written.retriever;
  const path = "/{{ parameters['report'] }}/{{ parameters['inner'] }}";
  const stream_template = {
    ...{ ...written, $parameters: { report: "none" } },
    retriever: { ...written.retriever, requester: { ...requester, path, $parameters: { inner: "none" } } },
  };
  const streams = async (use_parent_parameters: boolean, ...mappings: object[]) => {
    const stream_config = { type: "StreamConfig", configs_pointer: ["reports"] };
    const components_mapping = [mapped(["name"], "{{ components_values.name }}"), ...mappings];
    const components_resolver = { type: "ConfigComponentsResolver", stream_config, components_mapping };
    const template = { type: "DynamicDeclarativeStream", stream_template, components_resolver, use_parent_parameters };
    const source = JSON.stringify({ ...JSON.parse(manifest(origin)), streams: undefined, dynamic_streams: [template] });
    const connector = createConnector(source, { config: { reports: [{ name: "a" }] }, dispatcher });
    for await (const _ of (await connector.streams())[0]?.read() ?? []);
    return asked.splice(0);
  };
  const outer = mapped(["$parameters", "report"], "outer");
  const inner = mapped(["retriever", "requester", "$parameters", "report"], "inner");
  expect(await streams(true, outer, inner)).toEqual(["/outer/none"]);
  expect(await streams(false, outer, inner)).toEqual(["/inner/none"]);
  expect(await streams(true, mapped(["**", "inner"], "deep"))).toEqual(["/none/deep"]);
});
