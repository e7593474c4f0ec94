// Answers written by hand from each vendor's documentation, one behaviour each, with what they say.
import type { Said } from "./said.ts";

export type Kind = "anthropic" | "google" | "bedrock";

export const models: Record<Kind, string> = {
  anthropic: "claude-sonnet-4-5",
  google: "gemini-2.5-pro",
  bedrock: "anthropic.claude-3-haiku-20240307-v1:0",
};

export interface Case {
  readonly name: string;
  readonly kind: Kind;
  /** A whole answer, or the events of a stream. */
  readonly answer: object | readonly object[];
  readonly said: Partial<Said>;
  /** The AI SDK reads it otherwise, and why. */
  readonly apart?: string;
}

const usage = { input_tokens: 10, output_tokens: 5 };
const claude = (content: object[], stop: string, more: object = usage) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content,
  stop_reason: stop,
  usage: more,
});
const text = (value: string) => ({ type: "text", text: value });
const start = (more: object = usage) => ({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [],
    stop_reason: null,
    usage: more,
  },
});
const block = (index: number, content: object) => ({ type: "content_block_start", index, content_block: content });
const delta = (index: number, content: object) => ({ type: "content_block_delta", index, delta: content });
const stop = (index: number) => ({ type: "content_block_stop", index });
const end = (reason: string, more: object = { output_tokens: 5 }) => [
  { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: more },
  { type: "message_stop" },
];
const toolUse = (id: string, name: string) => ({ type: "tool_use", id, name, input: {} });
const json = (partial: string) => ({ type: "input_json_delta", partial_json: partial });

const gemini = (parts: object[], finishReason: string, more: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, finishReason, index: 0 }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15, ...more },
});
const converse = (content: object[], stopReason: string, more: object = {}) => ({
  output: { message: { role: "assistant", content } },
  stopReason,
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15, ...more },
  metrics: { latencyMs: 1 },
});

export const cases: readonly Case[] = [
  {
    kind: "anthropic",
    name: "text blocks are joined with nothing between",
    answer: claude([text("a"), text(" b")], "end_turn"),
    said: { text: "a b", finish: "stop" },
  },
  { kind: "anthropic", name: "stop_sequence", answer: claude([text("a")], "stop_sequence"), said: { finish: "stop" } },
  { kind: "anthropic", name: "pause_turn", answer: claude([text("a")], "pause_turn"), said: { finish: "stop" } },
  { kind: "anthropic", name: "max_tokens", answer: claude([text("a")], "max_tokens"), said: { finish: "length" } },
  {
    kind: "anthropic",
    name: "model_context_window_exceeded",
    answer: claude([text("a")], "model_context_window_exceeded"),
    said: { finish: "length" },
  },
  { kind: "anthropic", name: "refusal", answer: claude([], "refusal"), said: { text: "", finish: "content_filter" } },
  {
    kind: "anthropic",
    name: "thinking, redacted thinking, parallel calls, one without arguments",
    answer: claude(
      [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "redacted_thinking", data: "x" },
        text("calling"),
        { type: "tool_use", id: "t1", name: "weather", input: { location: "Paris" } },
        { type: "tool_use", id: "t2", name: "weather", input: {} },
      ],
      "tool_use",
      { ...usage, output_tokens_details: { thinking_tokens: 3 } },
    ),
    said: {
      text: "calling",
      reasoning: "hm",
      finish: "tool_calls",
      tools: [
        { name: "weather", args: { location: "Paris" } },
        { name: "weather", args: {} },
      ],
      usage: { prompt: 10, cached: 0, completion: 5, reasoning: 3 },
    },
  },
  {
    kind: "anthropic",
    name: "cache reads and writes are added to the prompt",
    answer: claude([text("a")], "end_turn", { ...usage, cache_read_input_tokens: 7, cache_creation_input_tokens: 20 }),
    said: { usage: { prompt: 37, cached: 7, completion: 5, reasoning: 0 } },
  },
  {
    kind: "anthropic",
    name: "iterations are summed, an advisor's are not",
    answer: claude([text("a")], "end_turn", {
      ...usage,
      iterations: [
        { type: "compaction", input_tokens: 100, output_tokens: 20 },
        { type: "message", input_tokens: 10, output_tokens: 5 },
        { type: "advisor_message", model: "x", input_tokens: 1000, output_tokens: 500 },
      ],
    }),
    said: { usage: { prompt: 110, cached: 0, completion: 25, reasoning: 0 } },
  },
  {
    kind: "anthropic",
    name: "server tools and MCP are not the client's calls",
    answer: claude(
      [
        { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "q" } },
        { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
        { type: "mcp_tool_use", id: "m1", name: "echo", server_name: "s", input: {} },
        { type: "mcp_tool_result", tool_use_id: "m1", is_error: false, content: [text("r")] },
        text("found"),
      ],
      "end_turn",
    ),
    said: { text: "found", tools: [], finish: "stop" },
  },
  {
    kind: "anthropic",
    name: "streamed: two calls, arguments in pieces, one without any",
    answer: [
      start(),
      block(0, text("")),
      delta(0, { type: "text_delta", text: "so" }),
      stop(0),
      block(1, toolUse("t1", "weather")),
      delta(1, json("")),
      delta(1, json('{"location":')),
      delta(1, json('"Paris"}')),
      stop(1),
      block(2, toolUse("t2", "weather")),
      stop(2),
      ...end("tool_use"),
    ],
    said: {
      text: "so",
      finish: "tool_calls",
      tools: [
        { name: "weather", args: { location: "Paris" } },
        { name: "weather", args: {} },
      ],
    },
  },
  {
    kind: "anthropic",
    name: "streamed: thinking with a signature, pings, server tools, cumulative usage",
    answer: [
      start({ input_tokens: 3, cache_read_input_tokens: 4, cache_creation_input_tokens: 5, output_tokens: 1 }),
      { type: "ping" },
      block(0, { type: "thinking", thinking: "" }),
      delta(0, { type: "thinking_delta", thinking: "let me" }),
      delta(0, { type: "signature_delta", signature: "sig" }),
      stop(0),
      block(1, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
      delta(1, json('{"query":"q"}')),
      stop(1),
      block(2, { type: "web_search_tool_result", tool_use_id: "s", content: [] }),
      stop(2),
      block(3, text("")),
      delta(3, { type: "text_delta", text: "ok" }),
      stop(3),
      ...end("end_turn", { output_tokens: 9, output_tokens_details: { thinking_tokens: 2 } }),
    ],
    said: {
      text: "ok",
      reasoning: "let me",
      tools: [],
      finish: "stop",
      usage: { prompt: 12, cached: 4, completion: 9, reasoning: 2 },
    },
  },
  {
    kind: "anthropic",
    name: "streamed: refusal",
    answer: [start(), ...end("refusal")],
    said: { text: "", finish: "content_filter" },
  },

  {
    kind: "google",
    name: "STOP with a call is tool_calls",
    answer: gemini([{ functionCall: { name: "weather", args: { location: "x" } } }], "STOP"),
    said: { finish: "tool_calls", tools: [{ name: "weather", args: { location: "x" } }] },
  },
  { kind: "google", name: "MAX_TOKENS", answer: gemini([{ text: "a" }], "MAX_TOKENS"), said: { finish: "length" } },
  ...["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"].map(
    (reason): Case => ({
      kind: "google",
      name: reason,
      answer: gemini([], reason),
      said: { text: "", finish: "content_filter" },
    }),
  ),
  {
    kind: "google",
    name: "a blocked prompt: no candidates",
    answer: { promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 } },
    said: { text: "", finish: "content_filter", usage: { prompt: 10, cached: 0, completion: 0, reasoning: 0 } },
  },
  {
    kind: "google",
    name: "thoughts beside the candidates, cached inside the prompt, tool prompts beside it",
    answer: gemini([{ text: "hm", thought: true }, { text: "a" }], "STOP", {
      cachedContentTokenCount: 4,
      thoughtsTokenCount: 6,
      toolUsePromptTokenCount: 2,
    }),
    said: { text: "a", reasoning: "hm", usage: { prompt: 12, cached: 4, completion: 11, reasoning: 6 } },
  },
  {
    kind: "google",
    name: "code that Gemini ran is not the client's call",
    answer: gemini(
      [
        { executableCode: { language: "PYTHON", code: "1+1" } },
        { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2" } },
        { text: "2" },
      ],
      "STOP",
    ),
    said: { text: "2", tools: [], finish: "stop" },
  },
  {
    kind: "google",
    name: "streamed: parallel calls in one event, usage cumulative",
    answer: [
      {
        candidates: [{ content: { parts: [{ text: "a" }] } }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1 },
      },
      {
        candidates: [
          {
            content: {
              parts: [
                { functionCall: { name: "weather", args: { location: "x" } } },
                { functionCall: { name: "weather", args: {} } },
              ],
            },
          },
        ],
      },
      gemini([], "STOP"),
    ],
    said: {
      text: "a",
      finish: "tool_calls",
      tools: [
        { name: "weather", args: { location: "x" } },
        { name: "weather", args: {} },
      ],
      usage: { prompt: 10, cached: 0, completion: 5, reasoning: 0 },
    },
  },
  {
    kind: "google",
    name: "streamed: a blocked prompt",
    answer: [{ promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 10 } }],
    said: { text: "", finish: "content_filter" },
  },
  {
    kind: "google",
    name: "streamed: SAFETY in the middle",
    answer: [{ candidates: [{ content: { parts: [{ text: "so" }] } }] }, gemini([], "SAFETY")],
    said: { text: "so", finish: "content_filter" },
  },

  {
    kind: "bedrock",
    name: "text blocks joined",
    answer: converse([{ text: "a" }, { text: "b" }], "end_turn"),
    said: { text: "ab", finish: "stop" },
  },
  {
    kind: "bedrock",
    name: "a text with its sources is a text",
    answer: converse([{ citationsContent: { content: [{ text: "a" }], citations: [] } }, { text: "b" }], "end_turn"),
    said: { text: "ab", finish: "stop" },
  },
  { kind: "bedrock", name: "max_tokens", answer: converse([{ text: "a" }], "max_tokens"), said: { finish: "length" } },
  {
    kind: "bedrock",
    name: "model_context_window_exceeded",
    answer: converse([{ text: "a" }], "model_context_window_exceeded"),
    said: { finish: "length" },
    apart: "the SDK says other",
  },
  {
    kind: "bedrock",
    name: "guardrail_intervened",
    answer: converse([{ text: "no" }], "guardrail_intervened"),
    said: { finish: "content_filter" },
  },
  {
    kind: "bedrock",
    name: "content_filtered",
    answer: converse([], "content_filtered"),
    said: { finish: "content_filter" },
  },
  {
    kind: "bedrock",
    name: "cache reads and writes are added to the prompt",
    answer: converse([{ text: "a" }], "end_turn", { cacheReadInputTokens: 7, cacheWriteInputTokens: 20 }),
    said: { usage: { prompt: 37, cached: 7, completion: 5, reasoning: 0 } },
  },
  {
    kind: "bedrock",
    name: "streamed: text without a start, interleaved calls, usage after the stop",
    answer: [
      { messageStart: { role: "assistant" } },
      { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "so" } } },
      { contentBlockStop: { contentBlockIndex: 0 } },
      { contentBlockStart: { contentBlockIndex: 1, start: { toolUse: { toolUseId: "t1", name: "weather" } } } },
      { contentBlockStart: { contentBlockIndex: 2, start: { toolUse: { toolUseId: "t2", name: "weather" } } } },
      { contentBlockDelta: { contentBlockIndex: 2, delta: { toolUse: { input: '{"location":' } } } },
      { contentBlockDelta: { contentBlockIndex: 1, delta: { toolUse: { input: '{"location":"a"}' } } } },
      { contentBlockDelta: { contentBlockIndex: 2, delta: { toolUse: { input: '"b"}' } } } },
      { contentBlockStop: { contentBlockIndex: 1 } },
      { contentBlockStop: { contentBlockIndex: 2 } },
      { messageStop: { stopReason: "tool_use" } },
      { metadata: { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15, cacheReadInputTokens: 2 } } },
    ],
    said: {
      text: "so",
      finish: "tool_calls",
      tools: [
        { name: "weather", args: { location: "a" } },
        { name: "weather", args: { location: "b" } },
      ],
      usage: { prompt: 12, cached: 2, completion: 5, reasoning: 0 },
    },
  },
];
