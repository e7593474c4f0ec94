// What a manifest must have before anything of it runs.
import { Agent } from "undici";
import { expect, test } from "vitest";
import type { ConnectorReply } from "#contract/connector-worker.ts";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { runConnectorJob } from "#daemon/integrations/connectors/declarative/job.ts";
import { loadManifest, parseManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { json, manifest, read, vendor } from "./one-stream.ts";

const stream = { ...JSON.parse(manifest("http://127.0.0.1:9")).streams[0] };
const dynamic = (...names: string[]) => ({
  type: "DynamicDeclarativeStream",
  name: "made",
  stream_template: stream,
  components_resolver: {
    type: "ParametrizedComponentsResolver",
    stream_parameters: { type: "StreamParametersDefinition", list_of_parameters_for_stream: names.map((n) => ({ n })) },
    components_mapping: [
      { type: "ComponentMappingDefinition", field_path: ["name"], value: "{{ components_values['n'] }}" },
    ],
  },
});
const conditional = (...streams: object[]) => ({
  ...{ type: "ConditionalStreams", condition: "{{ config['on'] == 'yes' }}", streams },
});

async function job(more: Record<string, unknown>, type: "inspect" | "check", config: Record<string, unknown> = {}) {
  const text = JSON.stringify({ ...JSON.parse(manifest("http://127.0.0.1:9")), streams: undefined, ...more });
  const replies: ConnectorReply[] = [];
  await runConnectorJob(type === "inspect" ? { type, manifest: text } : { type, manifest: text, config }, {
    ...{ signal: AbortSignal.timeout(20_000), env: {}, room: async () => {} },
    send: async (reply) => void replies.push(reply),
  });
  return replies.find((reply) => reply.type !== "log");
}

const failed = (detail: RegExp) => ({ type: "failed", detail: expect.stringMatching(detail) });

test.each([
  ["no streams", { streams: [] }, /it has no streams/],
  ["none of either kind", { streams: [], dynamic_streams: [] }, /it has no streams/],
  ["no streams under a condition", { streams: [conditional()] }, /it has no streams/],
  ["streams that are no list", { streams: {} }, /streams must be a list/],
  ["streams that are nothing", { streams: null }, /streams must be a list/],
  ["a stream that is a text", { streams: ["items"] }, /streams must be a list/],
  ["two of one name", { streams: [stream, stream] }, /two streams have the name 'items'/],
  ["one without a name", { streams: [{ ...stream, name: undefined }] }, /has no name/],
])("a manifest with %s is refused, saying so", async (_what, more, reason) => {
  for (const type of ["inspect", "check"] as const)
    expect(await job(more, type)).toMatchObject({
      type: "failed",
      code: "validation_failed",
      detail: expect.stringMatching(reason),
    });
});

test("more aliases than can be followed are refused; merged ones, many names and one that stands twice are not", () => {
  const text = manifest("http://127.0.0.1:9").slice(0, -1);
  const names = (count: number, write: (at: number) => string) => Array.from({ length: count }, (_, at) => write(at));
  expect(loadManifest(`${text}, "version": 2}`).version).toBe("2");
  const aliases = [...names(3000, (at) => `a${at}: &a${at} 1`), ...names(3000, (at) => `b${at}: *a${at}`)];
  expect(() => loadManifest(`${text}, ${aliases.join(", ")} }`)).toThrow("too many aliases");
  const few = `definitions: {a: &a {x: 1}, b: &b {y: 2}, c: {<<: *a, x: 3}, d: {<<: [*a, *b]}}`;
  const { resolved } = loadManifest(`${text}, ${few}, ${names(3000, (at) => `n${at}: 1`).join(", ")} }`);
  expect(resolved["definitions"]).toMatchObject({ c: { x: 3 }, d: { x: 1, y: 2 } });
});

test("a part that is referred to a thousand times is resolved once; what unfolds or nests without end is refused", () => {
  const parse = (definitions: object, more: object = {}) =>
    loadManifest(JSON.stringify({ ...JSON.parse(manifest("http://127.0.0.1:9")), definitions, ...more }));
  const wide = Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`p${at}`, at]));
  const base = { ...stream, schema_loader: { type: "InlineSchemaLoader", schema: wide } };
  const own = (at: number) => ({ $ref: "#/definitions/base", name: `s${at}`, schema_loader: { type: "Other" } });
  const streams = Array.from({ length: 1000 }, (_, at) => own(at));
  expect(parse({ base }, { streams }).resolved["streams"]).toHaveLength(1000);
  const chain = (make: (next: object) => object) =>
    Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`d${at}`, make({ $ref: `#/definitions/d${at + 1}` })]));
  const end = { d100: 1 };
  expect(() => parse({ ...end, ...chain((next) => ({ a: next, b: next })) })).toThrow("unfold to too many values");
  const deep = (next: object, levels = 150): object => (levels === 0 ? next : { a: deep(next, levels - 1) });
  expect(() => parse({ ...chain((next) => deep(next)), ...end })).toThrow("nest too deeply");
});

test("y and n are names and texts, as to the reference's reader; yes and no are booleans", () => {
  const text = `${manifest("http://127.0.0.1:9").slice(0, -1)}, definitions: {y: n, N: Y, a: yes, b: No, c: ON, d: off}}`;
  const { resolved } = loadManifest(text);
  expect(resolved["definitions"]).toEqual({ y: "n", N: "Y", a: true, b: false, c: true, d: false });
});

test("numbers and dates of a manifest are what the reference's reader takes for them", () => {
  const read = (value: string): unknown => parseManifest(`k: ${value}`)["k"];
  for (const text of ["e1", ".", "08", "1e5", "+.5", "2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01 10:00:00"])
    expect(read(text)).toBe(text);
  expect(["1.5", "1.", ".5", "1.0e+3", "1e-7", "010", "0x1F", "1_000", "-3", "1:30"].map(read)).toEqual([
    1.5, 1, 0.5, 1000, 1e-7, 8, 31, 1000, -3, 90,
  ]);
  expect(read("9007199254740993")).toBe("9007199254740993");
  expect(parseManifest("maximum: 9223372036854775807")).toEqual({ maximum: 2 ** 63 });
  expect(parseManifest("2020-01-01: a\ne1: b")).toEqual({ "2020-01-01": "a", e1: "b" });
});

test("a page of many records is handed on some at a time, and no more than were asked for", async () => {
  const many = Array.from({ length: 2500 }, (_, id) => ({ id }));
  const origin = await vendor((_request, response) => json(response, { items: many }));
  const sizes = async (limit?: number): Promise<number[]> => {
    const found: number[] = [];
    const read = { type: "read" as const, manifest: manifest(origin), config: { at: origin }, stream: "items" };
    await runConnectorJob(limit === undefined ? read : { ...read, limit }, {
      ...{ signal: AbortSignal.timeout(20_000), env: {}, room: async () => {} },
      send: async (reply) => void (reply.type === "records" && found.push(reply.records.length)),
    });
    return found;
  };
  expect([await sizes(), await sizes(1001), await sizes(3)]).toEqual([[1000, 1000, 500], [1000, 1], [3]]);
});

test("streams that the configuration makes are counted when they are made; a check of nothing does not succeed", async () => {
  expect(await job({ dynamic_streams: [dynamic("a", "b")] }, "inspect")).toMatchObject({
    summary: { streams: [], dynamic: true, missing_checks: [] },
  });
  expect(await job({ streams: [{ ...stream, name: "other" }] }, "inspect")).toMatchObject({
    summary: { dynamic: false, missing_checks: ["items"] },
  });
  // Which of them there is, is up to the configuration.
  expect(await job({ streams: [conditional(stream), conditional(stream)] }, "inspect")).toMatchObject({
    summary: { missing_checks: [] },
  });
  expect(await job({ dynamic_streams: [dynamic("a", "a")] }, "check")).toMatchObject(failed(/two streams.*'a'/));
  const check = { type: "CheckDynamicStream", stream_count: 1 };
  expect(await job({ check, dynamic_streams: [dynamic()] }, "check")).toMatchObject(failed(/no streams with this/));
  expect(await job({ check: {}, streams: [conditional(stream)] }, "check", { on: "no" })).toMatchObject(
    failed(/no streams with this/),
  );
  expect(await job({ streams: [conditional(stream)] }, "check")).toMatchObject(failed(/it has none/));
  // That there are some is enough where the manifest says so.
  const made = { ...check, use_check_availability: false };
  expect(await job({ check: made, dynamic_streams: [dynamic("a")] }, "check")).toMatchObject({ type: "end" });
  const named = { type: "CheckStream", dynamic_streams_check_configs: [{ dynamic_stream_name: "gone" }] };
  expect(await job({ check: named, dynamic_streams: [dynamic("a")] }, "check")).toMatchObject(
    failed(/no dynamic stream 'gone'/),
  );
});

const custom = (what: string) => ({ type: `Custom${what}`, class_name: `source.components.${what}` });
const withRetriever = (more: object) => ({ ...stream, retriever: { ...stream.retriever, ...more } });
const withRequester = (more: object) => withRetriever({ requester: { ...stream.retriever.requester, ...more } });

test("a template of streams that is written in Python is named when the manifest is added", async () => {
  const python = dynamic("a", "b");
  const stream_template = { ...stream, transformations: [{ type: "CustomTransformation", class_name: "source.Own" }] };
  const dynamic_streams = [{ ...python, name: "tables", stream_template }];
  expect(await job({ dynamic_streams }, "inspect")).toMatchObject(
    failed(/no stream can run; tables: .*'source\.Own' is/),
  );
  const refused = { name: "tables", refused: expect.stringContaining("source.Own") };
  expect(await job({ dynamic_streams: [...dynamic_streams, python] }, "inspect")).toMatchObject({
    summary: { streams: [refused], dynamic: true },
  });
});

test.each<[string, object]>([
  ["Retriever", { ...stream, retriever: custom("Retriever") }],
  ["SchemaLoader", { ...stream, schema_loader: custom("SchemaLoader") }],
  [
    "SchemaNormalization",
    withRetriever({
      record_selector: { ...stream.retriever.record_selector, schema_normalization: custom("SchemaNormalization") },
    }),
  ],
  [
    "BackoffStrategy",
    withRequester({ error_handler: { type: "DefaultErrorHandler", backoff_strategies: [custom("BackoffStrategy")] } }),
  ],
  [
    "Authenticator",
    withRequester({
      authenticator: {
        ...{ type: "SessionTokenAuthenticator", session_token_path: [], request_authentication: { type: "Bearer" } },
        login_requester: { ...stream.retriever.requester, authenticator: custom("Authenticator") },
      },
    }),
  ],
])("a custom %s is named when the manifest is added; the streams beside it are discovered", async (what, refused) => {
  const streams = [{ ...refused, name: "refused" }, stream];
  expect(await job({ streams }, "inspect")).toMatchObject({
    summary: {
      streams: [
        { refused: expect.stringContaining(`source.components.${what}' is written in Python`) },
        { refused: null },
      ],
    },
  });
  const text = JSON.stringify({ ...JSON.parse(manifest("http://127.0.0.1:9")), streams });
  const connector = createConnector(text, { config: {}, dispatcher: new Agent() });
  expect((await connector.streams()).map(({ name }) => name)).toEqual(["items"]);
});

test.each<[string, object, RegExp]>([
  ["a paginator", withRetriever({ paginator: "*ref(definitions.paginator)" }), /SimpleRetriever.paginator must be/],
  ["a router", withRetriever({ partition_router: "by_shop" }), /SimpleRetriever.partition_router must be/],
  ["a cursor", { ...stream, incremental_sync: "updated_at" }, /DeclarativeStream.incremental_sync must be/],
  ["a transformation", { ...stream, transformations: [5] }, /DeclarativeStream.transformations must be/],
  ["a schema's loader", { ...stream, schema_loader: "a" }, /DeclarativeStream.schema_loader must be/],
])("%s that is no component is told, not passed over", async (_what, wrong, message) => {
  expect(await job({ streams: [wrong] }, "inspect")).toMatchObject(failed(message));
});

test("what a configuration needs and is written in Python is named when the manifest is added", async () => {
  const [change, strategy] = [custom("ConfigTransformation"), custom("ValidationStrategy")];
  const validations = [{ type: "DpathValidator", field_path: ["a"], validation_strategy: strategy }];
  for (const rules of [
    { transformations: [change] },
    { config_migrations: [{ transformations: [change] }] },
    { validations },
  ])
    expect(await job({ streams: [stream], spec: { config_normalization_rules: rules } }, "inspect")).toMatchObject(
      failed(/is written in Python/),
    );
});

test("a parameter stands in for a field that is empty, of whatever kind", async () => {
  const asked: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url);
    json(response, { items: [] });
  });
  const $parameters = { request_parameters: { a: "1" }, request_headers: { "X-A": "1" } };
  await read(manifest(origin, { requester: { request_parameters: {}, $parameters } }));
  expect(asked).toEqual(["/items?a=1"]);
});

test("parameters beside a reference stand in place of those that it refers to, as every other field does", async () => {
  const asked: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url);
    json(response, { items: [] });
  });
  const whole = JSON.parse(manifest(origin, { requester: { path: "/{{ parameters.a }}-{{ parameters.b }}" } }));
  const base = { ...whole.streams[0], $parameters: { a: "1", b: "2" } };
  const streams = [{ $ref: "#/definitions/base", $parameters: { a: "3" } }];
  await read(JSON.stringify({ ...whole, definitions: { base }, streams }));
  expect(asked).toEqual(["/3-"]);
});

test("a check asks for no more than the first slice, and a reader who may stop for one partition at a time", async () => {
  const asked: unknown[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.at.searchParams.get("p"));
    json(response, { items: [] });
  });
  const request_option = { type: "RequestOption", inject_into: "request_parameter", field_name: "p" };
  const values = ["a", "b", "c", "d", "e"];
  const partition_router = { type: "ListPartitionRouter", cursor_field: "p", values, request_option };
  const source = manifest(origin, { retriever: { partition_router } });
  const options = { config: {}, dispatcher: new Agent() };
  await createConnector(source, options).check();
  expect(asked).toEqual(["a"]);
  for await (const _ of (await createConnector(source, { ...options, readsAhead: false }).stream("items")).read())
    if (asked.length > 2) break;
  expect(asked).toEqual(["a", "a", "b"]);
});

test("a check is made with the configuration that it is to have, a read is not", async () => {
  const asked: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url);
    json(response, { items: [{ id: 1 }] });
  });
  const whole = JSON.parse(manifest(origin, { requester: { path: "/{{ config['size'] }}" } }));
  const connectorWith = (config_overrides: object) =>
    createConnector(JSON.stringify({ ...whole, check: { ...whole.check, config_overrides } }), {
      ...{ config: { size: 100 }, dispatcher: new Agent() },
    });
  const connector = connectorWith({ size: 1 });
  await connector.check();
  for await (const _ of (await connector.stream("items")).read());
  expect(asked).toEqual(["/1", "/100"]);
  expect(() => connectorWith({ __airbyte_x: 1 })).toThrow("must not name __airbyte_x");
});
