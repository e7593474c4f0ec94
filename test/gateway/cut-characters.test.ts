// A text that was cut within an emoji ends in half a character, and vendors refuse a body with one: it goes as U+FFFD, and nothing else changes.
import { expect, test } from "vitest";
import { models } from "./documented-cases.ts";
import { playUpstream, send, tool, upstream, user } from "./sent.ts";

playUpstream();

test.each(["anthropic", "bedrock", "google"] as const)("%s", async (kind) => {
  const whole = "😀 C:\\ud83d \\\\ud83d \u0007";
  const call = { id: "c1", type: "function", function: { name: "f", arguments: '{"a":"\\ud83d","b\\udc00":1}' } };
  const messages = [
    user(`${whole}\ud83d\ud83d \\\ud83d\\`),
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c1", content: "\udc00 came" },
  ];
  await send(kind, { messages, tools: [tool("f")] }, models[kind]);
  const sent = upstream.requests.at(-1)?.body ?? "";
  expect(
    JSON.parse(sent, (_key, value) => (typeof value === "string" ? value.isWellFormed() && value : value)),
  ).toEqual(JSON.parse(sent));
  expect(sent).toContain(JSON.stringify(`${whole}\ufffd\ufffd \\\ufffd\\`).replaceAll("\ufffd", "\\ufffd"));
  expect(sent).toContain('{"a":"\\ufffd","b\\ufffd":1}');
  expect(sent).toContain("\\ufffd came");
});
