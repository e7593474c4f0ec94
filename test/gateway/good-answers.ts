// A sound answer of each ecosystem, whole and as a stream of events; what faults are made of.
import type { ProviderKind } from "#daemon/gateway/providers/adapter.ts";
import { frame } from "./event-stream.ts";

export type Ecosystem = Exclude<ProviderKind, "sandbox">;
export const ecosystems: readonly Ecosystem[] = ["openai", "azure", "anthropic", "google", "bedrock"];

/** Says "héllo 🎉 wörld"; 9 prompt tokens, 4 answer tokens. */
export const SAID = "héllo 🎉 wörld";

export interface GoodAnswer {
  readonly contentType: string;
  /** The stream's events, framed; the first carries no content, the last is the end mark. */
  readonly events: readonly Buffer[];
  readonly json: string;
  /** An error in the middle of the stream. */
  readonly errorEvent: Buffer;
  /** An error document. */
  readonly errorJson: string;
  /** An event that is not valid. */
  readonly brokenEvent: Buffer;
}

const sse = (value: unknown) => Buffer.from(`data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`);

const openaiUsage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
const chunk = (choices: unknown[], more: object = {}) =>
  sse({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices, ...more });

const openai: GoodAnswer = {
  contentType: "text/event-stream",
  events: [
    chunk([{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }]),
    chunk([{ index: 0, delta: { content: "héllo " }, logprobs: null, finish_reason: null }]),
    chunk([{ index: 0, delta: { content: "🎉 wörld" }, logprobs: null, finish_reason: null }]),
    chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }]),
    chunk([], { usage: openaiUsage }),
    sse("[DONE]"),
  ],
  json: JSON.stringify({
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      { index: 0, message: { role: "assistant", content: SAID, refusal: null }, logprobs: null, finish_reason: "stop" },
    ],
    usage: openaiUsage,
  }),
  errorEvent: sse({ error: { message: "it broke", type: "server_error", code: null } }),
  errorJson: JSON.stringify({ error: { message: "it broke", type: "server_error" } }),
  brokenEvent: sse('{"id":"c1","choices":[{"delta":{"content":"x'),
};

const anthropic: GoodAnswer = {
  contentType: "text/event-stream",
  events: [
    { type: "message_start", message: { id: "msg_1", model: "claude", usage: { input_tokens: 9, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "héllo " } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "🎉 wörld" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
    { type: "message_stop" },
  ].map((event) => Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)),
  json: JSON.stringify({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [{ type: "text", text: SAID }],
    stop_reason: "end_turn",
    usage: { input_tokens: 9, output_tokens: 4 },
  }),
  errorEvent: Buffer.from(
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
  ),
  errorJson: '{"type":"error","error":{"type":"api_error","message":"it broke"}}',
  brokenEvent: Buffer.from('event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"te\n\n'),
};

const googleUsage = { promptTokenCount: 9, candidatesTokenCount: 4, totalTokenCount: 13 };
const google: GoodAnswer = {
  contentType: "text/event-stream",
  events: [
    sse({ candidates: [{ content: { role: "model", parts: [{ text: "" }] }, index: 0 }] }),
    sse({ candidates: [{ content: { role: "model", parts: [{ text: "héllo " }] }, index: 0 }] }),
    sse({ candidates: [{ content: { role: "model", parts: [{ text: "🎉 wörld" }] }, index: 0 }] }),
    sse({ candidates: [{ content: { parts: [] }, finishReason: "STOP", index: 0 }], usageMetadata: googleUsage }),
  ],
  json: JSON.stringify({
    candidates: [{ content: { role: "model", parts: [{ text: SAID }] }, finishReason: "STOP", index: 0 }],
    usageMetadata: googleUsage,
  }),
  errorEvent: sse({ error: { code: 503, message: "busy", status: "UNAVAILABLE" } }),
  errorJson: '{"error":{"code":500,"message":"it broke","status":"INTERNAL"}}',
  brokenEvent: sse('{"candidates":[{"content":'),
};

const delta = (text: string) => frame("contentBlockDelta", JSON.stringify({ contentBlockIndex: 0, delta: { text } }));
const corrupt = Buffer.from(delta("lost"));
corrupt[corrupt.length - 6] = (corrupt[corrupt.length - 6] ?? 0) ^ 1;
const bedrock: GoodAnswer = {
  contentType: "application/vnd.amazon.eventstream",
  events: [
    frame("messageStart", '{"role":"assistant"}'),
    delta("héllo "),
    delta("🎉 wörld"),
    frame("contentBlockStop", '{"contentBlockIndex":0}'),
    frame("messageStop", '{"stopReason":"end_turn"}'),
    frame("metadata", '{"usage":{"inputTokens":9,"outputTokens":4,"totalTokens":13},"metrics":{"latencyMs":1}}'),
  ],
  json: JSON.stringify({
    output: { message: { role: "assistant", content: [{ text: SAID }] } },
    stopReason: "end_turn",
    usage: { inputTokens: 9, outputTokens: 4, totalTokens: 13 },
  }),
  errorEvent: frame("throttlingException", '{"message":"slow down"}', "exception"),
  errorJson: '{"message":"it broke"}',
  brokenEvent: corrupt,
};

export const good: Readonly<Record<Ecosystem, GoodAnswer>> = { openai, azure: openai, anthropic, google, bedrock };
