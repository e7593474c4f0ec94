// Components that few manifests use.
import { Agent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { declarativeSource } from "#daemon/integrations/connectors/declarative/source.ts";
import { cursor, day, json, manifest, read, vendor } from "./one-stream.ts";

test("a schema that the vendor tells is filtered and renamed as the manifest says", async () => {
  const origin = await vendor((_request, response) =>
    json(response, {
      items: [
        {
          fields: [
            { n: "First Name", t: "text" },
            { n: "hidden", t: "text" },
            { n: "Size", t: "int" },
            { n: "Sizes", t: "ints" },
          ],
        },
      ],
    }),
  );
  const source = JSON.parse(manifest(origin));
  const { retriever } = source.streams[0];
  source.streams[0].schema_loader = {
    ...{ type: "DynamicSchemaLoader", retriever },
    schema_type_identifier: {
      ...{ type: "SchemaTypeIdentifier", schema_pointer: ["fields"], key_pointer: ["n"], type_pointer: ["t"] },
      types_mapping: [
        {
          type: "TypesMap",
          current_type: "int",
          target_type: "number",
          condition: "{{ raw_schema.get('marks', {}) }}",
        },
        { type: "TypesMap", current_type: "int", target_type: "integer", condition: "{{ raw_schema['n'] == 'Size' }}" },
        { type: "TypesMap", current_type: "text", target_type: "string" },
        { type: "TypesMap", current_type: "ints", target_type: { field_type: "array", items: "integer" } },
      ],
    },
    schema_filter: { type: "RecordFilter", condition: "{{ 'hidden' not in record }}" },
    schema_transformations: [{ type: "KeysToSnakeCase" }],
  };
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const connector = createConnector(JSON.stringify(source), { config: {}, dispatcher });
  expect((await (await connector.stream("items")).schema())?.["properties"]).toEqual({
    first_name: { type: ["null", "string"] },
    size: { type: ["null", "integer"] },
    sizes: { type: ["null", "array"], items: { type: ["null", "integer"] } },
  });
});

test("of several schemas the first one says what a field is", async () => {
  const source = JSON.parse(manifest("http://127.0.0.1:1"));
  const inline = (properties: object) => ({ type: "InlineSchemaLoader", schema: { type: "object", properties } });
  const [text, integer] = [{ type: "string" }, { type: "integer" }];
  source.streams[0].schema_loader = [inline({ id: integer }), inline({ id: text, name: text })];
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const connector = createConnector(JSON.stringify(source), { config: {}, dispatcher });
  expect((await (await connector.stream("items")).schema())?.["properties"]).toEqual({ id: integer, name: text });
});

test("a discovery asks the vendor for some schemas at a time", async () => {
  let [under, most] = [0, 0];
  const origin = await vendor((_request, response) => {
    most = Math.max(most, ++under);
    setTimeout(() => {
      under--;
      json(response, { items: [{ n: "size" }] });
    }, 10);
  });
  const whole = JSON.parse(manifest(origin));
  const [stream] = whole.streams;
  const schema_type_identifier = { type: "SchemaTypeIdentifier", key_pointer: ["n"] };
  const schema_loader = { type: "DynamicSchemaLoader", retriever: stream.retriever, schema_type_identifier };
  const streams = Array.from({ length: 20 }, (_, at) => ({ ...stream, name: `s${at}`, schema_loader }));
  const connector = { id: "shop", manifest: { ...whole, streams }, config: {} };
  const source = declarativeSource({ connector, allowPrivate: [new URL(origin).host] });
  onTestFinished(() => source.close());
  const found = await source.discover();
  expect(found.map(({ name }) => name)).toEqual(streams.map(({ name }) => name));
  expect(found[19]?.schema).toHaveProperty("properties.size");
  expect(most).toBeLessThanOrEqual(8);
});

test("a state that is older than the vendor keeps changes for is read wholly", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.at.pathname);
    json(response, { items: [{ id: 1, at: day("2026-02-01") }] });
  });
  const part = (path: string) => JSON.parse(manifest(origin, { requester: { path }, sync: cursor })).streams[0];
  const source = JSON.parse(manifest(origin));
  source.streams = [
    {
      ...{ type: "StateDelegatingStream", name: "items", api_retention_period: "P30D" },
      ...{ full_refresh_stream: part("/full"), incremental_stream: part("/changes") },
    },
  ];
  const recent = `${new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 19)}Z`;
  for (const state of [undefined, { cursor: recent }, { cursor: day("2020-01-01") }])
    await read(JSON.stringify(source), { state });
  expect(asked.filter((path) => path !== "/changes")).toEqual(["/full", "/full"]);
});

test("of two routers that name the same parameter the first one's counts", async () => {
  const asked: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url);
    json(response, { items: [] });
  });
  const router = (cursor_field: string, ...values: string[]) => ({
    ...{ type: "ListPartitionRouter", cursor_field, values },
    request_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "p" },
  });
  await read(manifest(origin, { retriever: { partition_router: [router("a", "1"), router("b", "2", "3")] } }));
  expect(asked).toEqual(["/items?p=1", "/items?p=1"]);
});
