// What a manifest must have before anything of it runs.
import { expect, test } from "vitest";
import type { ConnectorReply } from "#contract/connector-worker.ts";
import { runConnectorJob } from "#daemon/integrations/connectors/declarative/job.ts";
import { manifest } from "./one-stream.ts";

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
  const failed = (detail: RegExp) => ({ type: "failed", detail: expect.stringMatching(detail) });
  expect(await job({ dynamic_streams: [dynamic("a", "a")] }, "check")).toMatchObject(failed(/two streams.*'a'/));
  const check = { type: "CheckDynamicStream", stream_count: 1 };
  expect(await job({ check, dynamic_streams: [dynamic()] }, "check")).toMatchObject(failed(/no streams with this/));
  expect(await job({ check: {}, streams: [conditional(stream)] }, "check", { on: "no" })).toMatchObject(
    failed(/no streams with this/),
  );
  expect(await job({ streams: [conditional(stream)] }, "check")).toMatchObject(failed(/it has none/));
  const named = { type: "CheckStream", dynamic_streams_check_configs: [{ dynamic_stream_name: "gone" }] };
  expect(await job({ check: named, dynamic_streams: [dynamic("a")] }, "check")).toMatchObject(
    failed(/no dynamic stream 'gone'/),
  );
});
