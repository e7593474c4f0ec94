// What servers of OpenAI's format answer, each as its documentation or its source has it: shown as OpenAI's specification has it, whole and
// streamed, and saying the same.
import { expect, test } from "vitest";
import { embeddingBody, readEmbeddings } from "#daemon/gateway/providers/openai/embeddings.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { specification } from "./specification.ts";
import { agent, callOf, collect, optionsOf, targetOf, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();
const provider = createProviders(agent).openai;

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const request = { model: "m", messages: [{ role: "user", content: "x" }] };

async function whole(answer: object) {
  upstream.answer = (response) => void response.end(JSON.stringify(answer));
  return await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf());
}

const completions: Record<string, [answer: object, said: object]> = {
  vLLM: [
    {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "hi",
            refusal: null,
            annotations: null,
            audio: null,
            function_call: null,
            tool_calls: [],
            reasoning_content: null,
          },
          logprobs: { content: [] },
          finish_reason: "stop",
          stop_reason: null,
        },
      ],
      service_tier: null,
      system_fingerprint: null,
      usage: { ...usage, prompt_tokens_details: null },
      prompt_logprobs: null,
    },
    { message: { content: "hi" }, finish_reason: "stop" },
  ],
  Groq: [
    {
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, logprobs: null, finish_reason: "stop" }],
      usage: { ...usage, queue_time: 0.1, completion_tokens_details: { reasoning_tokens: null } },
      service_tier: "on_demand",
      x_groq: { id: "req_1" },
    },
    { message: { content: "hi" } },
  ],
  "Mistral, thinking": [
    {
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            tool_calls: null,
            content: [
              { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
              { type: "text", text: "hi" },
            ],
          },
          finish_reason: "model_length",
        },
      ],
      usage,
    },
    { message: { content: "hi", reasoning_content: "hm" }, finish_reason: "length" },
  ],
  "Databricks, thinking": [
    {
      choices: [
        {
          message: {
            role: "assistant",
            content: [
              { type: "reasoning", summary: [{ type: "summary_text", text: "hm", signature: "s" }] },
              { type: "text", text: "hi" },
            ],
          },
          finish_reason: "stop",
        },
      ],
      usage,
    },
    { message: { content: "hi", reasoning_content: "hm" } },
  ],
  "Groq and OpenRouter, thinking": [
    {
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "hi", refusal: null, reasoning: "hm" },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage,
    },
    { message: { content: "hi", reasoning: "hm", reasoning_content: "hm" } },
  ],
  "OpenRouter, a file that was read beside a page that is cited": [
    {
      choices: [
        {
          message: {
            content: "hi",
            annotations: [
              { type: "file", file: { hash: "h", name: "a.pdf", content: [{ type: "text", text: "a" }] } },
              {
                type: "url_citation",
                url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 2 },
              },
            ],
          },
          finish_reason: "stop",
        },
      ],
      usage,
    },
    { message: { content: "hi", annotations: [{ type: "url_citation", url_citation: { title: "A" } }] } },
  ],
  "OpenAI, a custom tool's call in an answer whose fingerprint is null": [
    {
      system_fingerprint: null,
      choices: [
        {
          message: {
            content: null,
            tool_calls: [{ id: "c1", type: "custom", custom: { name: "sum", input: "4 + 4" } }],
          },
          finish_reason: "tool_calls",
        },
      ],
      usage,
    },
    { message: { tool_calls: [{ id: "c1", type: "custom", custom: { name: "sum", input: "4 + 4" } }] } },
  ],
  "Snowflake, an empty custom tool beside a function": [
    {
      choices: [
        {
          message: {
            tool_calls: [
              { id: "c1", type: "function", function: { name: "f", arguments: "{}" }, custom: { name: "", input: "" } },
            ],
          },
          finish_reason: "",
        },
      ],
      usage,
    },
    {
      message: { tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }] },
      finish_reason: "tool_calls",
    },
  ],
  "two calls of one id": [
    {
      choices: [
        {
          message: {
            tool_calls: ["{}", '{"a":1}'].map((text) => ({
              id: "c",
              type: "function",
              function: { name: "f", arguments: text },
            })),
          },
          finish_reason: "tool_calls",
        },
      ],
      usage,
    },
    {
      message: {
        tool_calls: [
          { id: "c", function: { arguments: "{}" } },
          { id: expect.stringMatching(/^call_/), function: { arguments: '{"a":1}' } },
        ],
      },
    },
  ],
  "a tool call without id and type, its arguments an object": [
    {
      choices: [
        { message: { tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] }, finish_reason: "tool_call" },
      ],
      usage,
    },
    {
      message: {
        content: null,
        tool_calls: [
          { id: expect.stringMatching(/^call_/), type: "function", function: { name: "f", arguments: '{"a":1}' } },
        ],
      },
      finish_reason: "tool_calls",
    },
  ],
};

test.each(Object.entries(completions))("whole: %s", async (_name, [answer, said]) => {
  const outcome = await whole(answer);
  if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
  const completion = JSON.parse(outcome.body.toString());
  specification()?.completion(completion);
  expect(completion.choices[0]).toMatchObject(said);
  expect(completion.usage).toMatchObject({ ...usage, cost_usd: 0.5 });
  expect(outcome.usage).toMatchObject({ input: 10, output: 5 });
});

test.each([
  { prompt_tokens: -5, completion_tokens: -7, total_tokens: -12 },
  { prompt_tokens: "12", completion_tokens: "7", total_tokens: "19" },
  { prompt_tokens: null, completion_tokens: null, total_tokens: null },
  { prompt_tokens: 1e308, completion_tokens: 1e308, total_tokens: 1e308 },
  { prompt_tokens: 2 ** 53, completion_tokens: 9.3e18, total_tokens: 1 },
])("counts that can be none are estimated instead: %j", async (nonsense) => {
  const choices = [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }];
  const outcome = await whole({ choices, usage: nonsense });
  if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
  expect(outcome.usage.estimated).toBe(true);
  const shown = JSON.parse(outcome.body.toString()).usage;
  expect(shown.prompt_tokens).toBe(outcome.usage.input);
  expect(shown.completion_tokens).toBe(outcome.usage.output);
  for (const count of [shown.prompt_tokens, shown.completion_tokens]) expect(count).toBeGreaterThan(0);
  for (const count of [shown.prompt_tokens, shown.completion_tokens]) expect(count).toBeLessThan(100);
});

test.each([
  ["Moonshot, Together", { cached_tokens: 4 }],
  ["DeepSeek", { prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 }],
  ["Mistral", { num_cached_tokens: 4 }],
  ["Mistral, of late", { prompt_token_details: { cached_tokens: 4 } }],
  ["OpenAI", { prompt_tokens_details: { cached_tokens: 4 }, cached_tokens: 9 }],
])("what the cache gave is counted wherever it stands: %s", async (_name, more) => {
  const outcome = await whole({
    choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    usage: { ...usage, ...more },
  });
  if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
  expect(outcome.usage).toMatchObject({ input: 6, cached: 4, output: 5 });
  expect(JSON.parse(outcome.body.toString()).usage.prompt_tokens_details).toEqual({ cached_tokens: 4 });
});

test("a byte order mark before an answer is passed over", async () => {
  const [answer] = completions["vLLM"] ?? [];
  upstream.answer = (response) => void response.end(`\ufeff${JSON.stringify(answer)}`);
  const got = await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf());
  expect(got.kind === "completion" && JSON.parse(got.body.toString())).toMatchObject({ object: "chat.completion" });
});

test("fewer choices than n asks for are no answer, but for OpenAI's own and what goes by its name", async () => {
  const choices = [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }];
  upstream.answer = (response) => void response.end(JSON.stringify({ choices, usage }));
  const asked = (n: number | null, named: string) =>
    provider.chat(callOf({ ...request, n }), { ...targetOf("openai", upstream), provider: named }, optionsOf());
  expect(await asked(2, "local")).toMatchObject({
    failure: { status: 400, type: "invalid_request_error", param: "n", message: expect.stringContaining("1 of the 2") },
    usage: { input: 10, output: 5 },
  });
  for (const [n, named] of [
    [1, "local"],
    [null, "local"],
    [2, "openai"],
  ] as const)
    expect(await asked(n, named)).toMatchObject({ kind: "completion" });
});

test.each(["error", "abort", "network_error", "insufficient_system_resource"])(
  "an answer that ends in an error is none: %s",
  async (reason) => {
    const choices = [{ index: 0, message: { role: "assistant", content: "hal" }, finish_reason: reason }];
    const failed = { kind: "failure", failure: { kind: "server", status: 502 } };
    expect(await whole({ choices, usage })).toMatchObject(failed);
  },
);

const piece = (delta: object, more: object = {}) => ({ choices: [{ index: 0, delta, finish_reason: null, ...more }] });
const streams: Record<string, [chunks: object[], said: object]> = {
  "vLLM and SGLang: nulls in every place": [
    [
      piece({ role: "assistant", content: "", tool_calls: null, function_call: null }, { logprobs: { content: [] } }),
      piece({
        role: null,
        content: null,
        tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "" } }],
      }),
      piece({
        content: null,
        tool_calls: [{ index: 0, id: null, type: null, function: { name: null, arguments: '{"a":1}' } }],
      }),
      { ...piece({}, { finish_reason: "tool_calls" }), service_tier: "on_demand", system_fingerprint: null },
      { choices: [], usage: { ...usage, prompt_tokens_details: null } },
    ],
    { calls: [["c1", "f", '{"a":1}']], finish: "tool_calls" },
  ],
  "a tool call without a type": [
    [
      piece({ role: "assistant", content: null }),
      piece({ tool_calls: [{ index: 0, id: "c1", function: { name: "f", arguments: "{" } }] }),
      piece({ tool_calls: [{ index: 0, function: { arguments: "}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    { calls: [["c1", "f", "{}"]], finish: "tool_calls" },
  ],
  "tool calls without a place": [
    [
      piece({
        tool_calls: [
          { id: "c1", function: { name: "f", arguments: "{}" } },
          { id: "c2", function: { name: "g", arguments: "{" } },
        ],
      }),
      piece({ tool_calls: [{ function: { arguments: "}" } }] }, { finish_reason: "tool_use" }),
      { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5 } },
    ],
    {
      calls: [
        ["c1", "f", "{}"],
        ["c2", "g", "{}"],
      ],
      finish: "tool_calls",
    },
  ],
  "Groq: reasoning of another name, usage at a place of its own": [
    [
      piece({ role: "assistant", content: null, reasoning: "hm" }),
      piece({ content: "hi" }),
      { ...piece({}, { finish_reason: "stop" }), x_groq: { id: "r", usage } },
    ],
    { text: "hi", reasoning: "hm", finish: "stop" },
  ],
  "two calls of one id, each in its place": [
    [
      piece({ tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } }] }),
      piece({ tool_calls: [{ index: 1, id: "c", type: "function", function: { name: "g", arguments: '{"a"' } }] }),
      piece({ tool_calls: [{ index: 1, id: "c", function: { name: "g", arguments: ":1}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        ["c", "f", "{}"],
        [expect.stringMatching(/^call_/), "g", '{"a":1}'],
      ],
    },
  ],
  "Gemini's imitation: parallel calls, all in the first place": [
    [
      piece({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "{}" } }] }),
      piece({ tool_calls: [{ index: 0, id: "c2", type: "function", function: { name: "g", arguments: '{"a"' } }] }),
      piece({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
      piece({ tool_calls: [{ index: 0, id: "c3", type: "function", function: { name: "f", arguments: "{}" } }] }),
      piece({ tool_calls: [{ index: 1, id: "c4", type: "function", function: { name: "g", arguments: "{}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        ["c1", "f", "{}"],
        ["c2", "g", '{"a":1}'],
        ["c3", "f", "{}"],
        ["c4", "g", "{}"],
      ],
    },
  ],
  "Claude's imitation: places count the text before the calls": [
    [
      piece({ role: "assistant", content: "hm" }),
      piece({ tool_calls: [{ index: 1, id: "c1", type: "function", function: { name: "f", arguments: "" } }] }),
      piece({ tool_calls: [{ index: 1, function: { arguments: "{}" } }] }),
      piece({ tool_calls: [{ index: 3, type: "function", function: { name: "g", arguments: "{" } }] }),
      piece({ tool_calls: [{ index: 3, function: { arguments: "}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      text: "hm",
      calls: [
        ["c1", "f", "{}"],
        [expect.stringMatching(/^call_/), "g", "{}"],
      ],
    },
  ],
  "a call's id in every piece of it": [
    [
      piece({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: '{"a"' } }] }),
      piece({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { arguments: ":" } }] }),
      piece({ tool_calls: [{ index: 0, id: "other", type: "function", function: { arguments: "1}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    { calls: [["c1", "f", '{"a":1}']] },
  ],
  "NIM, Zhipu: calls without an id": [
    [
      piece({ tool_calls: [{ index: 0, type: "function", function: { name: "f", arguments: "" } }] }),
      piece({ tool_calls: [{ index: 0, function: { name: null, arguments: "{}" } }] }),
      piece({ tool_calls: [{ index: 1, function: { name: "g", arguments: "{" } }] }),
      // One of its own, for which it is too late.
      piece({ tool_calls: [{ index: 1, id: "late", function: { arguments: "}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        [expect.stringMatching(/^call_/), "f", "{}"],
        [expect.stringMatching(/^call_/), "g", "{}"],
      ],
      ids: 2,
    },
  ],
  "MiMo and Command A at vLLM's: names that come late, or never": [
    [
      piece({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "", arguments: '{"a' } }] }),
      piece({ tool_calls: [{ index: 0, function: { arguments: '":' } }] }),
      piece({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "1" } }] }),
      piece({ tool_calls: [{ index: 0, function: { arguments: "}" } }] }),
      piece({ tool_calls: [{ index: 1, id: "c2", type: "function", function: { arguments: "{}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        ["c1", "f", '{"a":1}'],
        ["c2", "", "{}"],
      ],
      ids: 2,
    },
  ],
  "calls of which a later one is named before an earlier": [
    [
      piece({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { arguments: "{" } }] }),
      piece({ tool_calls: [{ index: 1, id: "c2", type: "function", function: { name: "g", arguments: "{" } }] }),
      piece({ tool_calls: [{ index: 0, function: { name: "f", arguments: "}" } }] }),
      piece({ tool_calls: [{ index: 1, function: { arguments: "}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        ["c2", "g", "{}"],
        ["c1", "f", "{}"],
      ],
      ids: 2,
    },
  ],
  "SGLang: neither a place nor, at first, a name, but the id in every piece": [
    [
      piece({ tool_calls: [{ id: "c1", type: "function", function: { arguments: "{" } }] }),
      piece({ tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "" } }] }),
      piece({ tool_calls: [{ id: "c1", type: "function", function: { arguments: "}" } }] }),
      piece({ tool_calls: [{ id: "c2", type: "function", function: { name: "f", arguments: "{}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        ["c1", "f", "{}"],
        ["c2", "f", "{}"],
      ],
    },
  ],
  "Bedrock's access gateway: places from -1": [
    [
      piece({ tool_calls: [{ index: -1, id: "c1", type: "function", function: { name: "f", arguments: "" } }] }),
      piece({ tool_calls: [{ index: -1, function: { arguments: "{}" } }] }),
      piece({ tool_calls: [{ index: 0, id: "c2", type: "function", function: { name: "g", arguments: "{}" } }] }),
      { ...piece({}, { finish_reason: "tool_calls" }), usage },
    ],
    {
      calls: [
        ["c1", "f", "{}"],
        ["c2", "g", "{}"],
      ],
    },
  ],
  "Moonshot: usage in the last choice": [
    [piece({ content: "hi" }), piece({}, { finish_reason: "stop", usage })],
    { text: "hi", finish: "stop" },
  ],
  "Databricks, thinking": [
    [
      piece({ role: "assistant", content: [{ type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] }] }),
      piece({ content: [{ type: "reasoning", summary: [{ type: "summary_text", text: "", signature: "s" }] }] }),
      piece({ content: "hi" }),
      { ...piece({ content: "" }, { finish_reason: "stop" }), usage },
    ],
    { text: "hi", reasoning: "hm", finish: "stop" },
  ],
  "Mistral, thinking": [
    [
      piece({ role: "assistant", content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
      piece({ content: "hi" }),
      { ...piece({ content: "" }, { finish_reason: "model_length" }), usage },
    ],
    { text: "hi", reasoning: "hm", finish: "length" },
  ],
};

test.each(Object.entries(streams))("streamed: %s", async (_name, [chunks, expected]) => {
  const base = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" };
  upstream.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${chunks.map((one) => `data: ${JSON.stringify({ ...base, ...one })}\n\n`).join("")}data: [DONE]\n\n`);
  };
  const asked = { ...request, stream: true, stream_options: { include_usage: true } };
  const got = await collect(await provider.chat(callOf(asked), targetOf("openai", upstream), optionsOf()));
  expect(got).toMatchObject({ done: true, end: { result: "completed" } });
  const said = { text: "", reasoning: "", calls: [] as string[][], ids: 0, finish: "" };
  const begun = new Set<number>();
  for (const event of got.events as {
    choices: { index: number; delta: Record<string, unknown>; finish_reason: string | null }[];
  }[]) {
    specification()?.chunk(event);
    for (const { index, delta, finish_reason: reason } of event.choices) {
      // OpenAI's own client falls over a choice that has none.
      if (!begun.has(index)) expect(delta["role"]).toBe("assistant");
      begun.add(index);
      said.text += delta["content"] ?? "";
      said.reasoning += delta["reasoning_content"] ?? "";
      for (const call of (delta["tool_calls"] ?? []) as {
        index: number;
        id?: string;
        type?: string;
        function: { name?: string; arguments?: string };
      }[]) {
        if (call.id) said.ids++;
        expect(call.index).toBeLessThanOrEqual(said.calls.length);
        // It falls over a call without a type, too.
        if (!said.calls[call.index]) expect(call.type).toBe("function");
        said.calls[call.index] ??= [call.id ?? "", call.function.name ?? "", ""];
        const known = said.calls[call.index] as string[];
        known[2] += call.function.arguments ?? "";
      }
      said.finish = reason ?? said.finish;
    }
  }
  expect(said).toMatchObject(expected);
  expect(got.events.at(-1)).toMatchObject({ choices: [], usage: { ...usage, cost_usd: 0.5 } });
});

test.each([
  ["arguments", [{ index: 0, id: "c1", function: { arguments: "x".repeat(600_000) } }]],
  ["calls", Array.from({ length: 6_000 }, () => ({ function: { name: "f", arguments: "" } }))],
])("a stream with more %s than anybody waits for ends", async (_name, calls) => {
  const event = `data: ${JSON.stringify(piece({ tool_calls: calls }))}\n\n`;
  upstream.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(event);
    response.end(`${event}data: [DONE]\n\n`);
  };
  const outcome = await provider.chat(callOf({ ...request, stream: true }), targetOf("openai", upstream), optionsOf());
  expect((await collect(outcome)).end).toMatchObject({ result: "failed", failure: { kind: "protocol" } });
});

test("calls that a server ends with `stop`, or without a word, end with `tool_calls`, for agents that look for it, whole and streamed", async () => {
  const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
  const outcome = await whole({
    choices: [{ index: 0, message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "stop" }],
    usage,
  });
  expect(outcome.kind === "completion" && JSON.parse(outcome.body.toString()).choices[0].finish_reason).toBe(
    "tool_calls",
  );
  const chunk = (delta: object, finish_reason: string | null) => ({
    id: "1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
  const piece = { tool_calls: [{ index: 0, ...call }] };
  for (const list of [
    [chunk(piece, null), chunk({}, "stop")],
    [chunk(piece, "stop")],
    [chunk(piece, null), chunk({}, "")],
    [chunk(piece, null)],
  ]) {
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`${list.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")}data: [DONE]\n\n`);
    };
    const streamed = callOf({ ...request, stream: true });
    const { events } = await collect(await provider.chat(streamed, targetOf("openai", upstream), optionsOf()));
    expect(events.at(-1)).toMatchObject({ choices: [{ finish_reason: "tool_calls" }] });
    const named = callOf({ ...request, stream: true, tool_choice: { type: "function", function: { name: "f" } } });
    const asked = await collect(await provider.chat(named, targetOf("openai", upstream), optionsOf()));
    expect(asked.events.at(-1)).toMatchObject({ choices: [{ finish_reason: "stop" }] });
  }
});

test.each([
  ["as it is", {}, {}],
  ["written anew", { object: "chunk" }, {}],
  ["with the usage beside it", {}, { usage }],
])("an end that is said twice is shown once: a stream that goes on %s", async (_how, head, beside) => {
  const chunk = (delta: object, finish_reason: string | null, more: object = {}) =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }], ...head, ...more })}\n\n`;
  upstream.answer = (response) =>
    void response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(
        chunk({ role: "assistant", content: "a" }, null) +
          chunk({}, "stop") +
          chunk({ content: "" }, "stop", beside) +
          "data: [DONE]\n\n",
      );
  const outcome = await provider.chat(callOf({ ...request, stream: true }), targetOf("openai", upstream), optionsOf());
  const { events, done } = await collect(outcome);
  const ends = (events as { choices: { finish_reason: string | null }[] }[]).map(
    ({ choices }) => choices[0]?.finish_reason,
  );
  expect(ends).toEqual([null, "stop", null]);
  expect(done).toBe(true);
});

test("thoughts beside an empty `content` are shown as they come, not held until the answer begins", async () => {
  const piece = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  for (const delta of [
    { content: "", reasoning: "hm" },
    { content: "", reasoning_content: "hm" },
    { content: "", reasoning_details: [{ type: "reasoning.text", text: "hm" }] },
  ]) {
    let end = () => {};
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(piece(delta));
      end = () => void response.end(`${piece({ content: "a" })}${piece({}, "stop")}data: [DONE]\n\n`);
    };
    const outcome = await provider.chat(
      callOf({ ...request, stream: true }),
      targetOf("openai", upstream),
      optionsOf({ timeoutMs: 1_000 }),
    );
    expect(outcome.kind, JSON.stringify(delta)).toBe("stream");
    end();
    await collect(outcome);
  }
});

test("a refusal of stream_options and what is asked after it have one time for their headers", async () => {
  let refused = 0;
  upstream.answer = (response, _, body) => {
    const refuse = () => void response.writeHead(400).end('{"error":{"message":"stream_options"}}');
    if (!body.includes("stream_options")) return;
    setTimeout(() => {
      refused = performance.now();
      refuse();
    }, 800);
  };
  const asked = callOf({ ...request, stream: true });
  const outcome = await provider.chat(asked, targetOf("openai", upstream, "silent"), optionsOf({ timeoutMs: 1_000 }));
  expect(outcome).toMatchObject({ failure: { kind: "timeout" } });
  // Of its own time the second one would have all.
  expect(performance.now() - refused).toBeLessThan(1_000);
});

test("a server that refuses stream_options is asked once more without it, and later without it at once", async () => {
  const asked = { ...request, stream: true, stream_options: { include_usage: true } };
  upstream.answer = (response, _, body) => {
    if (body.includes("stream_options")) {
      const detail = [
        { type: "extra_forbidden", loc: ["body", "stream_options"], msg: "Extra inputs are not permitted" },
      ];
      return void response.writeHead(422).end(JSON.stringify({ detail }));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" };
    for (const [delta, finish_reason] of [[{ role: "assistant", content: "hi" }, null] as const, [{}, "stop"] as const])
      response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    response.end("data: [DONE]\n\n");
  };
  // Not those of the test before, which it does not wait for.
  const asks = () => upstream.requests.filter(({ body }) => !body.includes('"silent"')).length;
  const before = asks();
  const stream = () => provider.chat(callOf(asked), targetOf("openai", upstream), optionsOf());
  const atOnce = await Promise.all([stream(), stream()]);
  expect([...atOnce.map(({ kind }) => kind), asks() - before]).toEqual(["stream", "stream", 4]);
  await Promise.all(atOnce.map(collect));
  for (const sent of [5, 6]) {
    const got = await collect(await stream());
    expect(got.end.usage).toMatchObject({ estimated: true });
    expect([got.done, asks() - before]).toEqual([true, sent]);
  }
  // What a client has put there is its own fault, and tells nothing of the server.
  const elsewhere = targetOf("openai", upstream, "strict");
  const odd = { ...asked, stream_options: { include_usage: true, odd: 1 } };
  expect(await provider.chat(callOf(odd), elsewhere, optionsOf())).toMatchObject({ kind: "failure" });
  expect(asks() - before).toBe(7);
  const refused = { message: "stream_options is only allowed when streaming", type: "invalid_request_error" };
  upstream.answer = (response) => void response.writeHead(400).end(JSON.stringify({ error: refused }));
  const outcome = await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf());
  expect(outcome).toMatchObject({ kind: "failure", failure: { upstreamStatus: 400 } });
  expect(asks() - before).toBe(8);
});

test("a server that refuses both in one word is asked once more without either", async () => {
  const extra = (name: string) => ({
    type: "extra_forbidden",
    loc: ["body", name],
    msg: "Extra inputs are not permitted",
  });
  const [answer] = completions["vLLM"] ?? [];
  upstream.answer = (response, _, body) => {
    const detail = ["stream_options", "user"].filter((name) => name in JSON.parse(body)).map(extra);
    if (detail.length > 0) response.writeHead(422).end(JSON.stringify({ detail }));
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };
  const before = upstream.requests.length;
  const stream = () =>
    provider.chat(
      callOf({ ...request, stream: true }, { user: "u1" }),
      targetOf("openai", upstream, "both"),
      optionsOf(),
    );
  expect([(await stream()).kind, (await stream()).kind]).toEqual(["stream", "stream"]);
  expect(upstream.requests.length - before).toBe(3);
});

test.each([false, true])(
  "log probabilities without bytes or alternatives come as the specification has them (stream: %j)",
  async (stream) => {
    // TGI; Ollama; a server that gives nothing else.
    const content = [
      { token: "a", logprob: -0.1, top_logprobs: [{ token: "a", logprob: -0.1 }] },
      { token: "b", logprob: -0.2, bytes: [98] },
      { token: "c" },
    ];
    const choice = { index: 0, logprobs: { content }, finish_reason: "stop" };
    const head = { id: "1", created: 1, model: "m" };
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      const answer = stream
        ? { ...head, object: "chat.completion.chunk", choices: [{ ...choice, delta: { content: "abc" } }] }
        : {
            ...head,
            object: "chat.completion",
            choices: [{ ...choice, message: { role: "assistant", content: "abc" } }],
          };
      response.end(stream ? `data: ${JSON.stringify(answer)}\n\ndata: [DONE]\n\n` : JSON.stringify(answer));
    };
    const asked = callOf({ ...request, logprobs: true, top_logprobs: 1, stream });
    const outcome = await provider.chat(asked, targetOf("openai", upstream), optionsOf());
    const given = outcome.kind === "completion" ? JSON.parse(String(outcome.body)) : (await collect(outcome)).events[0];
    if (stream) specification()?.chunk(given);
    else specification()?.completion(given);
    expect(given.choices[0].logprobs).toEqual({
      content: [
        { token: "a", logprob: -0.1, bytes: null, top_logprobs: [{ token: "a", logprob: -0.1, bytes: null }] },
        { token: "b", logprob: -0.2, bytes: [98], top_logprobs: [] },
        { token: "c", logprob: -9999, bytes: null, top_logprobs: [] },
      ],
      refusal: null,
    });
  },
);

async function streamed(text: string) {
  upstream.answer = (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
  const asked = { ...request, stream: true, stream_options: { include_usage: true } };
  return await collect(await provider.chat(callOf(asked), targetOf("openai", upstream), optionsOf()));
}

const sent = (chunk: object) =>
  `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", ...chunk })}\n\n`;

test("Perplexity's stream ends with a chunk of its own, and no other end", async () => {
  const first = sent({ ...piece({ role: "assistant", content: "hi" }), usage });
  const last = { object: "chat.completion.done", ...piece({ content: "" }, { finish_reason: "stop" }), usage };
  const { events, done, end } = await streamed(first + sent(last));
  for (const event of events) specification()?.chunk(event);
  expect(done).toBe(true);
  expect(end).toMatchObject({ result: "completed", usage: { input: 10, output: 5 } });
  expect(events.at(-1)).toMatchObject({ choices: [], usage: { ...usage, cost_usd: 0.5 } });
  expect(await streamed(first)).toMatchObject({ done: false, end: { failure: { kind: "truncated" } } });
});

test.each(['{"code":500,"message":"no room","type":"server_error"}', '{"error":{"message":"no room"}}', "no room"])(
  "an error in a field of its own, as llama.cpp's older servers say it, is told: %s",
  async (said) => {
    const { done, end } = await streamed(`${sent(piece({ content: "hi" }))}error: ${said}\n\n`);
    expect(done).toBe(false);
    expect(end).toMatchObject({ result: "failed", failure: { message: "no room" } });
  },
);

test.each([
  ["nothing but its end", []],
  ["Azure's prompt filters alone", [{ choices: [], prompt_filter_results: [] }]],
])("a stream of %s is no answer, and nobody pays for it", async (_, events) => {
  upstream.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(
      [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join(""),
    );
  };
  const outcome = await provider.chat(callOf({ ...request, stream: true }), targetOf("openai", upstream), optionsOf());
  expect(outcome).toMatchObject({ kind: "failure", failure: { kind: "protocol", upstreamStatus: 200 }, usage: null });
});

test.each([
  ["stream_options", "user"],
  ["user", "stream_options"],
])(
  "a server that refuses %s and then %s is asked until nothing of the gateway's own is left, later at once",
  async (...order) => {
    upstream.answer = (response, _, body) => {
      const refused = order.find((name) => name in JSON.parse(body));
      if (refused)
        response.writeHead(400).end(JSON.stringify({ error: { message: `Unsupported parameter: '${refused}'` } }));
      else
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(completions["vLLM"]?.[0]));
    };
    const before = upstream.requests.length;
    const call = callOf({ ...request, stream: true }, { user: "u1" });
    const stream = () => provider.chat(call, targetOf("openai", upstream, order.join()), optionsOf());
    expect((await stream()).kind).toBe("stream");
    expect(upstream.requests.length - before).toBe(3);
    expect((await stream()).kind).toBe("stream");
    expect(upstream.requests.length - before).toBe(4);
  },
);

test("a server that refuses the token's user beside texts to embed is asked without it, and later at once", async () => {
  const answer = { object: "list", data: [{ object: "embedding", index: 0, embedding: [0.5] }], model: "m" };
  upstream.answer = (response, _, body) => {
    if (JSON.parse(body).user) response.writeHead(400).end('{"error":{"message":"Unsupported parameter: user"}}');
    else response.end(JSON.stringify({ ...answer, usage: { prompt_tokens: 1, total_tokens: 1 } }));
  };
  const before = upstream.requests.length;
  const embed = (body: { input: string; user?: string }) =>
    provider.embed?.(
      { request: body, raw: null, requestId: "req_test", user: "u1" },
      targetOf("openai", upstream, "embedding"),
      optionsOf(),
    );
  expect(await embed({ input: "hi" })).toMatchObject({ kind: "completion" });
  expect(await embed({ input: "hi" })).toMatchObject({ kind: "completion" });
  expect(upstream.requests.length - before).toBe(3);
  expect(await embed({ input: "hi", user: "u1" })).toMatchObject({ failure: { upstreamStatus: 400 } });
});

test("a refusal that repeats a long request keeps its status, of chats and of texts to embed", async () => {
  const detail = [{ loc: ["body", "n"], msg: "Input should be a valid integer", input: "x".repeat(400_000) }];
  upstream.answer = (response) => void response.writeHead(422).end(JSON.stringify({ detail }));
  const target = targetOf("openai", upstream);
  const refused = { kind: "failure", failure: { kind: "invalid", status: 422, upstreamStatus: 422 }, usage: null };
  expect(await provider.chat(callOf(request), target, optionsOf())).toMatchObject(refused);
  const call = { request: { input: "hi" }, raw: null, requestId: "req_test", user: null };
  expect(await provider.embed?.(call, target, optionsOf())).toMatchObject(refused);
});

test("numbers of a server that gives no base64 come as base64 to who asks for it, as OpenAI's clients do", async () => {
  const vector = [0.25, -1.5, 3];
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  const data = [{ object: "embedding", index: 0, embedding: vector }];
  upstream.answer = (response) => void response.end(JSON.stringify({ object: "list", data, model: "m", usage }));
  for (const encoding_format of ["base64", "float", undefined] as const) {
    const asked = { input: "hi", ...(encoding_format && { encoding_format }) };
    const call = { request: asked, raw: null, requestId: "req_test", user: null };
    const got = await provider.embed?.(call, targetOf("openai", upstream), optionsOf());
    if (got?.kind !== "completion") throw new Error(JSON.stringify(got));
    const { embedding } = JSON.parse(String(got.body)).data[0];
    if (encoding_format !== "base64") expect(embedding).toEqual(vector);
    else expect([...new Float32Array(new Uint8Array(Buffer.from(embedding, "base64")).buffer)]).toEqual(vector);
  }
});

test("Perplexity's bytes are the numbers that OpenAI's clients ask for, in either format, of which it is not told", () => {
  const target = { ...targetOf("openai", upstream), baseUrl: "https://api.perplexity.ai/v1" };
  const vector = [-128, 0, 1, 127];
  const bytes = Buffer.from(Int8Array.from(vector)).toString("base64");
  const answer = { object: "list", model: "m", data: [{ object: "embedding", index: 0, embedding: bytes }], usage };
  for (const encoding_format of ["base64", "float", undefined] as const) {
    const asked = { model: "m", input: "hi", ...(encoding_format && { encoding_format }) };
    const call = { request: asked, raw: null, requestId: "req_test", user: null };
    const sent = embeddingBody(call, target, { counting: true, user: true });
    expect(JSON.parse(String(sent))).toEqual({ model: "m", input: "hi" });
    const { body } = readEmbeddings(Buffer.from(JSON.stringify(answer)), call, target, () => 0);
    const { embedding } = JSON.parse(String(body)).data[0];
    if (encoding_format !== "base64") expect(embedding).toEqual(vector);
    else expect([...new Float32Array(new Uint8Array(Buffer.from(embedding, "base64")).buffer)]).toEqual(vector);
  }
});

test("embeddings come in the order of their inputs, whatever order and indexes a server gives them", async () => {
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  const embedded = async (indexes: readonly unknown[]) => {
    const data = indexes.map((index, at) => ({ object: "embedding", index, embedding: [at] }));
    upstream.answer = (response) => void response.end(JSON.stringify({ object: "list", data, model: "m", usage }));
    const call = { request: { input: ["a", "b", "c"] }, raw: null, requestId: "req_test", user: null };
    const got = await provider.embed?.(call, targetOf("openai", upstream), optionsOf());
    if (got?.kind !== "completion") throw new Error(JSON.stringify(got));
    const answered: { index: number; embedding: number[] }[] = JSON.parse(String(got.body)).data;
    return answered.map(({ index, embedding }) => `${index}:${embedding}`).join(" ");
  };
  expect(await embedded([0, 1, 2])).toBe("0:0 1:1 2:2");
  expect(await embedded([2, 0, 1])).toBe("0:1 1:2 2:0");
  for (const indexes of [Array(3).fill(0), [undefined, 1, 1], [null, "1", 2]])
    expect(await embedded(indexes)).toBe("0:0 1:1 2:2");
  // Who was left out stays so.
  expect(await embedded([0, 2])).toBe("0:0 2:1");
});

test("the gateway's own drop_unsupported, which clients send with everything, reaches no server beside texts to embed", async () => {
  upstream.answer = (response) => void response.end("{}");
  const asked = { input: "hi", drop_unsupported: true };
  const call = { request: asked, raw: Buffer.from(JSON.stringify(asked)), requestId: "req_test", user: null };
  await provider.embed?.(call, targetOf("openai", upstream), optionsOf());
  expect(JSON.parse(upstream.requests.at(-1)?.body ?? "")).toEqual({ input: "hi", model: "m" });
});

test("embeddings say in the specification's form what they cost, and an error behind a 200 is one", async () => {
  const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
  const embedded = async (answer: object) => {
    upstream.answer = (response) => void response.end(JSON.stringify(answer));
    const call = { request: { input: "hi" }, raw: null, requestId: "req_test", user: null };
    return provider.embed?.(call, targetOf("openai", upstream), optionsOf());
  };
  // Voyage counts the total alone.
  for (const usage of [{ total_tokens: 9 }, { prompt_tokens: 9 }, { prompt_tokens: 9, total_tokens: null }]) {
    const got = await embedded({ object: "list", data, model: "m", usage });
    if (got?.kind !== "completion") throw new Error(JSON.stringify(got));
    expect(JSON.parse(String(got.body))).toEqual({
      ...{ object: "list", data, model: "m" },
      usage: { prompt_tokens: 9, total_tokens: 9, cost_usd: 0.5 },
    });
    expect(got.usage).toMatchObject({ input: 9 });
  }
  const bare = await embedded({ data: [{ embedding: [0.5] }, { embedding: "AAAAPw==" }], usage: { total_tokens: 2 } });
  if (bare?.kind !== "completion") throw new Error(JSON.stringify(bare));
  expect(JSON.parse(String(bare.body))).toEqual({
    object: "list",
    model: "m",
    data: [
      { object: "embedding", index: 0, embedding: [0.5] },
      { object: "embedding", index: 1, embedding: [0.5] },
    ],
    usage: { prompt_tokens: 2, total_tokens: 2, cost_usd: 0.5 },
  });
  const limited = { error: { message: "slow down", code: "rate_limit_exceeded" } };
  expect(await embedded(limited)).toMatchObject({ failure: { kind: "rate_limit", message: "slow down" } });
  const none = { kind: "protocol", message: "The provider's answer has no embeddings." };
  for (const vectors of [undefined, [], ["x"], [{ index: 0 }]])
    expect(await embedded({ object: "list", data: vectors, model: "m", usage: { total_tokens: 1 } })).toMatchObject({
      failure: none,
    });
});

test.each([
  [400, { detail: "Unsupported parameter: user" }],
  [400, { error: { message: 'Invalid JSON payload received. Unknown name "user": Cannot find field.' } }],
  [400, { error: { message: "Unrecognized request argument supplied: user" } }],
  [422, { detail: [{ type: "extra_forbidden", loc: ["body", "user"], msg: "Extra inputs are not permitted" }] }],
])(
  "a server that refuses the token's user is asked once more without it, and later at once: %i %j",
  async (status, said) => {
    const [answer] = completions["vLLM"] ?? [];
    upstream.answer = (response, _, body) => {
      if (JSON.parse(body).user) response.writeHead(status).end(JSON.stringify(said));
      else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    };
    const target = targetOf("openai", upstream, JSON.stringify(said));
    const before = upstream.requests.length;
    for (const stream of [false, true]) {
      const call = callOf({ ...request, stream }, { user: "u1" });
      const got = await provider.chat(call, target, optionsOf());
      expect(got.kind).toBe(stream ? "stream" : "completion");
    }
    expect(upstream.requests.length - before).toBe(3);
    // Its own user is the client's to be refused.
    const own = callOf({ ...request, user: "u1" }, { user: "u1" });
    expect(await provider.chat(own, target, optionsOf())).toMatchObject({ failure: { status } });
  },
);
