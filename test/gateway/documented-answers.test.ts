// Answers written by hand from each vendor's documentation, one behaviour each, over real HTTP. Where the AI SDK reads the same bytes to the
// same end, it is asked too.
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { eventStreamBytes, frame } from "./event-stream.ts";
import { type Said, type SdkModel, saidByGateway, saidByGatewayStream, saidBySdk, saidBySdkStream } from "./said.ts";
import { specification } from "./specification.ts";
import { agent, callOf, collect, optionsOf, startUpstream, targetOf, type Upstream } from "./upstream.ts";

type Kind = "anthropic" | "google" | "bedrock";
let upstream: Upstream;
const providers = createProviders(agent);
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());

const models: Record<Kind, string> = {
  anthropic: "claude-sonnet-4-5",
  google: "gemini-2.5-pro",
  bedrock: "anthropic.claude-3-haiku-20240307-v1:0",
};

function sdk(kind: Kind): SdkModel {
  const apiKey = "test";
  const made =
    kind === "anthropic"
      ? createAnthropic({ apiKey, baseURL: `${upstream.url}/v1` })(models.anthropic)
      : kind === "google"
        ? createGoogleGenerativeAI({ apiKey, baseURL: `${upstream.url}/v1beta` })(models.google)
        : createAmazonBedrock({ region: "us-east-1", apiKey, baseURL: upstream.url })(models.bedrock);
  return made as unknown as SdkModel;
}

interface Case {
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

const cases: readonly Case[] = [
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

describe("documented answers", () => {
  test.each(cases.map((one) => [`${one.kind}: ${one.name}`, one] as const))("%s", async (_name, one) => {
    const { kind, answer } = one;
    const streamed = Array.isArray(answer);
    upstream.answer = (response) => {
      if (!streamed)
        return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
      const lines = (answer as object[]).map((event) => JSON.stringify(event));
      if (kind === "bedrock") {
        response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
        return void response.end(eventStreamBytes(lines));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(lines.map((line) => `data: ${line}\r\n\r\n`).join(""));
    };
    const request = {
      messages: [{ role: "user", content: "x" }],
      ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    };
    const outcome = await providers[kind].chat(callOf(request), targetOf(kind, upstream, models[kind]), optionsOf());
    let ours: Said;
    if (streamed) {
      const got = await collect(outcome);
      expect(got.end).toMatchObject({ result: "completed" });
      expect(got.done).toBe(true);
      for (const event of got.events) specification()?.chunk(event);
      ours = saidByGatewayStream(got.events);
    } else {
      if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
      const completion = JSON.parse(outcome.body.toString());
      specification()?.completion(completion);
      ours = saidByGateway(completion);
    }
    expect(ours).toMatchObject(one.said);
    if (!one.apart) expect(ours).toEqual(streamed ? await saidBySdkStream(sdk(kind)) : await saidBySdk(sdk(kind)));
  });

  test("Gemini's choices keep their places, and its log probabilities come along", async () => {
    const candidate = (index: number, value: string) => ({
      index,
      content: { parts: [{ text: value }] },
      finishReason: "STOP",
      logprobsResult: {
        chosenCandidates: [{ token: value, logProbability: -0.5 }],
        topCandidates: [{ candidates: [{ token: value, logProbability: -0.5 }] }],
      },
    });
    const answer = {
      candidates: [candidate(0, "a"), candidate(1, "b")],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 },
    };
    const request = { messages: [{ role: "user", content: "x" }], n: 2, logprobs: true };
    for (const stream of [false, true]) {
      upstream.answer = (response) => {
        if (!stream) return void response.end(JSON.stringify(answer));
        response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${JSON.stringify(answer)}\n\n`);
      };
      const outcome = await providers.google.chat(
        callOf({ ...request, stream }),
        targetOf("google", upstream),
        optionsOf(),
      );
      if (stream) {
        const got = await collect(outcome);
        for (const event of got.events) specification()?.chunk(event);
        const choices = got.events.flatMap(
          (event) => (event as { choices: { index: number; delta: { content?: string } }[] }).choices,
        );
        expect(
          choices.filter((choice) => choice.delta.content).map((choice) => [choice.index, choice.delta.content]),
        ).toEqual([
          [0, "a"],
          [1, "b"],
        ]);
      } else {
        if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
        const completion = JSON.parse(outcome.body.toString());
        specification()?.completion(completion);
        expect(completion.choices).toMatchObject([
          { index: 0, message: { content: "a" }, logprobs: { content: [{ token: "a", logprob: -0.5 }] } },
          { index: 1, message: { content: "b" } },
        ]);
      }
    }
  });
});

describe("errors", () => {
  const google = (code: number, status: string, details: object[] = []) => ({
    error: { code, message: "m", status, details },
  });
  const anthropic = (type: string) => ({ type: "error", error: { type, message: "m" }, request_id: "r" });
  const retry = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.4s" }];
  const key = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }];

  test.each([
    ["anthropic", 400, anthropic("invalid_request_error"), {}, { status: 400, type: "invalid_request_error" }],
    ["anthropic", 401, anthropic("authentication_error"), {}, { status: 401 }],
    ["anthropic", 403, anthropic("permission_error"), {}, { status: 403 }],
    ["anthropic", 404, anthropic("not_found_error"), {}, { status: 404 }],
    ["anthropic", 413, anthropic("request_too_large"), {}, { status: 413, type: "invalid_request_error" }],
    [
      "anthropic",
      429,
      anthropic("rate_limit_error"),
      { "retry-after": "12" },
      { status: 429, kind: "rate_limit", retryAfterMs: 12_000 },
    ],
    ["anthropic", 500, anthropic("api_error"), {}, { status: 502, kind: "server" }],
    ["anthropic", 529, anthropic("overloaded_error"), {}, { status: 503, kind: "overloaded" }],
    ["google", 400, google(400, "INVALID_ARGUMENT"), {}, { status: 400, type: "invalid_request_error" }],
    ["google", 400, [google(400, "INVALID_ARGUMENT", key)], {}, { status: 401, kind: "auth" }],
    ["google", 403, google(403, "PERMISSION_DENIED"), {}, { status: 403 }],
    ["google", 404, google(404, "NOT_FOUND"), {}, { status: 404 }],
    ["google", 429, google(429, "RESOURCE_EXHAUSTED", retry), {}, { status: 429, retryAfterMs: 34_400 }],
    ["google", 500, google(500, "INTERNAL"), {}, { status: 502 }],
    ["google", 503, google(503, "UNAVAILABLE"), {}, { status: 503 }],
    ["google", 504, google(504, "DEADLINE_EXCEEDED"), {}, { status: 504 }],
    ["google", 200, google(429, "RESOURCE_EXHAUSTED", retry), {}, { status: 429, retryAfterMs: 34_400 }],
    ["bedrock", 400, { message: "m" }, { "x-amzn-errortype": "ValidationException:http://x/" }, { status: 400 }],
    ["bedrock", 403, { message: "m" }, { "x-amzn-errortype": "AccessDeniedException" }, { status: 403 }],
    ["bedrock", 404, { message: "m" }, { "x-amzn-errortype": "ResourceNotFoundException" }, { status: 404 }],
    ["bedrock", 424, { message: "m" }, { "x-amzn-errortype": "ModelErrorException" }, { status: 502 }],
    [
      "bedrock",
      429,
      { message: "m" },
      { "x-amzn-errortype": "ThrottlingException" },
      { status: 429, kind: "rate_limit" },
    ],
    [
      "bedrock",
      429,
      { message: "m" },
      { "x-amzn-errortype": "ModelNotReadyException" },
      { status: 503, kind: "overloaded" },
    ],
    [
      "bedrock",
      408,
      { message: "m" },
      { "x-amzn-errortype": "ModelTimeoutException" },
      { status: 504, kind: "timeout" },
    ],
    ["bedrock", 200, { message: "m" }, {}, { status: 502, kind: "protocol" }],
  ] as const)("%s %i %j", async (kind, status, body, headers, expected) => {
    upstream.answer = (response) =>
      void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    const request = { messages: [{ role: "user", content: "x" }] };
    const outcome = await providers[kind].chat(callOf(request), targetOf(kind, upstream, models[kind]), optionsOf());
    expect(outcome).toMatchObject({ kind: "failure", failure: { message: expect.stringMatching(/m/), ...expected } });
  });

  test("an error before the first content is an attempt that failed, whatever the status line said", async () => {
    const firsts: Record<Kind, Buffer> = {
      anthropic: Buffer.from(
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n',
      ),
      google: Buffer.from('data: {"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}\n\n'),
      bedrock: frame("serviceUnavailableException", '{"message":"m"}', "exception"),
    };
    for (const kind of ["anthropic", "google", "bedrock"] as const) {
      upstream.answer = (response) =>
        void response.writeHead(200, { "content-type": "text/event-stream" }).end(firsts[kind]);
      const request = { messages: [{ role: "user", content: "x" }], stream: true };
      const outcome = await providers[kind].chat(callOf(request), targetOf(kind, upstream, models[kind]), optionsOf());
      expect(outcome).toMatchObject({ kind: "failure", failure: { kind: "overloaded", status: 503 } });
    }
  });
});
