// Members of tools whose names Claude refuses, against a server that refuses them as it does.
import { expect, test } from "vitest";
import { eventStreamBytes } from "./event-stream.ts";
import { playUpstream, providers, result, upstream, user } from "./sent.ts";
import { callOf, collect, optionsOf, targetOf } from "./upstream.ts";

playUpstream();

const properties = {
  "filter[id]": { type: "string", description: "Which." },
  "filter{id}": { type: "object", properties: { "free name": {} } },
  filter_id_: { type: "integer" },
  名: true,
  ["x".repeat(70)]: {},
  same: {
    anyOf: [{ $ref: "#/properties/filter%5Bid%5D" }, { $ref: "#/properties/filter{id}/properties/free%20name" }],
  },
};
const names = ["filter_id__2", "filter_id__3", "filter_id_", "_", "x".repeat(56), "same"];
const tools = [
  { type: "function", function: { name: "f", parameters: { type: "object", properties, required: ["filter[id]"] } } },
];
const own = '{"filter[id]":12345678901234567890,"filter_id_":1,"名":"x"}';
const sent = '{"filter_id__2":12345678901234567890,"filter_id_":1,"_":"x"}';
const pieces = [sent.slice(0, 9), sent.slice(9)];

const answers = {
  anthropic: {
    whole: `{"id":"m","content":[{"type":"tool_use","id":"t2","name":"f","input":${sent}}],"stop_reason":"tool_use","usage":{}}`,
    streamed: [
      { type: "message_start", message: { id: "m", usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t2", name: "f", input: {} } },
      ...pieces.map((partial_json) => ({
        type: "content_block_delta",
        index: 0,
        delta: { type: "input_json_delta", partial_json },
      })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ]
      .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join(""),
  },
  bedrock: {
    whole: `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t2","name":"f","input":${sent}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1}}`,
    streamed: eventStreamBytes(
      [
        { contentBlockStart: { contentBlockIndex: 0, start: { toolUse: { toolUseId: "t2", name: "f" } } } },
        ...pieces.map((input) => ({ contentBlockDelta: { contentBlockIndex: 0, delta: { toolUse: { input } } } })),
        { contentBlockStop: { contentBlockIndex: 0 } },
        { messageStop: { stopReason: "tool_use" } },
        { metadata: { usage: { inputTokens: 1, outputTokens: 1 } } },
      ].map((event) => JSON.stringify(event)),
    ),
  },
};

test.each([
  ["anthropic", "claude-haiku-4-5"],
  ["bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0"],
] as const)(
  "%s is told names that it takes, and calls come back with the tool's own, whole and streamed",
  async (kind, model) => {
    const messages = [
      user("x"),
      { role: "assistant", tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: own } }] },
      result("t1", "y"),
    ];
    for (const stream of [false, true]) {
      upstream.answer = (response) => {
        const body = upstream.requests.at(-1)?.body ?? "";
        const schema = schemaIn(JSON.parse(body));
        if (!Object.keys(schema.properties).every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name))) {
          response.writeHead(400).end('{"message":"input_schema.properties: Property keys should match pattern"}');
        } else response.end(answers[kind][stream ? "streamed" : "whole"]);
      };
      const call = callOf({ messages, tools, stream, max_tokens: 9 });
      const outcome = await providers[kind].chat(call, targetOf(kind, upstream, model), optionsOf());
      const text = outcome.kind === "completion" ? outcome.body.toString() : (await collect(outcome)).text;
      expect(text).toContain(`"arguments":${JSON.stringify(own)}`);
      const body = upstream.requests.at(-1)?.body ?? "";
      expect(body).toContain(`"input":${sent}`);
      const schema = schemaIn(JSON.parse(body));
      expect(Object.keys(schema.properties)).toEqual(names);
      expect(schema).toMatchObject({
        properties: { filter_id__2: { type: "string", description: 'Which. (name: "filter[id]")' }, _: true },
        required: ["filter_id__2"],
      });
      expect(schema).toHaveProperty("properties.same.anyOf", [
        { $ref: "#/properties/filter_id__2" },
        { $ref: "#/properties/filter_id__3/properties/free%20name" },
      ]);
    }
  },
);

// biome-ignore lint/suspicious/noExplicitAny: two wires' forms
function schemaIn({ tools: given, toolConfig }: any): { readonly properties: object } {
  return given?.[0].input_schema ?? toolConfig.tools[0].toolSpec.inputSchema.json;
}
