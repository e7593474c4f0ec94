// An id of 19 digits is no double: what a model calls with it, and what a tool answers, arrives as it was written.
import { expect, test } from "vitest";
import { models } from "./documented-cases.ts";
import { playUpstream, providers, send, tool, upstream, user } from "./sent.ts";
import { callOf, collect, optionsOf, targetOf } from "./upstream.ts";

playUpstream();

const args =
  '{"id":1234567890123456789,"list":[-9007199254740993],"text":"1234567890123456789","share":0.1234567890123}';
const gemini = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`;
const answers = {
  anthropic: `{"id":"m","content":[{"type":"tool_use","id":"t","name":"f","input":${args}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
  bedrock: `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f","input":${args}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1}}`,
  google: gemini,
};

test.each(["anthropic", "bedrock", "google"] as const)("%s", async (kind) => {
  upstream.answer = (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(answers[kind]);
  const outcome = await providers[kind].chat(
    callOf({ messages: [user("x")], tools: [tool("f")] }),
    targetOf(kind, upstream, models[kind]),
    optionsOf(),
  );
  if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
  const [choice] = JSON.parse(outcome.body.toString()).choices;
  expect(choice.message.tool_calls[0].function.arguments).toBe(args);

  const call = { id: "c1", type: "function", function: { name: "f", arguments: args } };
  const messages = [
    user("x"),
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c1", content: args },
  ];
  await send(kind, { messages, tools: [tool("f")] }, models[kind]);
  const sent = upstream.requests.at(-1)?.body ?? "";
  expect(sent).toContain(args);
  // Google's own numbers are doubles: such a result goes there as a text.
  expect(sent).toContain(JSON.stringify(args));
});

test("streamed", async () => {
  upstream.answer = (response) =>
    void response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${gemini}\n\n`);
  const request = callOf({ messages: [user("x")], tools: [tool("f")], stream: true });
  const { text } = await collect(
    await providers.google.chat(request, targetOf("google", upstream, models.google), optionsOf()),
  );
  expect(text).toContain(JSON.stringify(args));
});
