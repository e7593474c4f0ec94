// OpenAI's format end to end over real HTTP: what is forwarded, what comes back.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readAnswer, spliceCost } from "#daemon/gateway/providers/cost.ts";
import { endpointUnder } from "#daemon/gateway/providers/endpoint.ts";
import { openaiDecoder } from "#daemon/gateway/providers/openai/stream.ts";
import { openaiWire } from "#daemon/gateway/providers/openai/wire.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { type ThoughtMemory, thoughtMemory } from "#daemon/gateway/providers/thoughts/memory.ts";
import type { Emit } from "#daemon/gateway/providers/wire.ts";
import { seeded } from "#test/identity/random.ts";
import { sharedPath } from "#test/shared.ts";
import { specification } from "./specification.ts";
import { agent, callOf, collect, optionsOf, targetOf, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();
const provider = createProviders(agent).openai;
if (!provider) throw new Error("no provider");
const messages = [{ role: "user", content: "hé 🎉" }];

const completion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "gpt-x",
  choices: [
    { index: 0, message: { role: "assistant", content: "hi", refusal: null }, logprobs: null, finish_reason: "stop" },
  ],
  usage: {
    prompt_tokens: 10,
    completion_tokens: 7,
    total_tokens: 17,
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 5 },
  },
};

function events(list: unknown[], end = "data: [DONE]\n\n"): string {
  return list.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("") + end;
}

const decoderOf = (emit: Emit, thoughts: ThoughtMemory = thoughtMemory()) =>
  openaiDecoder(
    {
      request: { model: "m", messages: [{ role: "user", content: "hi" }], stream: true },
      requestId: "req_test",
      caller: "token:test",
      target: targetOf("openai", upstream),
      prepared: {
        request: { origin: "", method: "POST", path: "", headers: {}, body: null },
        notes: { dropped: [] },
      },
      created: 1,
      cost: () => null,
    },
    emit,
    thoughts,
  );

const chunk = (choices: unknown[], more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "gpt-x",
  choices,
  ...more,
});

describe("what goes to the provider", () => {
  test("the client's bytes with the model's name exchanged and nothing else touched", async () => {
    upstream.answer = (response) => void response.end(JSON.stringify(completion));
    const text =
      '{ "messages" : [{"role":"user","content":"a \\"model\\": b","x":1e400}],\n "model":"openai/gpt-x" , "vendor_new": [1,{"model":2}] }';
    const request = JSON.parse(text);
    await provider.chat(
      callOf(request, { raw: Buffer.from(text) }),
      targetOf("openai", upstream, "gpt-x"),
      optionsOf(),
    );
    expect(upstream.requests[0]?.body).toBe(text.replace("openai/gpt-x", "gpt-x"));
    expect(upstream.requests[0]?.path).toBe("/v1/chat/completions");
    expect(upstream.requests[0]?.headers.authorization).toBe("Bearer sk-canary-0123456789abcdef");
  });

  test("a key that stands twice is not forwarded as it came", async () => {
    upstream.answer = (response) => void response.end(JSON.stringify(completion));
    const text = '{"model":"forbidden","messages":[{"role":"user","content":"x"}],"model":"gpt-x"}';
    const call = callOf(JSON.parse(text), { raw: Buffer.from(text) });
    await provider.chat(call, targetOf("openai", upstream, "gpt-x"), optionsOf());
    expect(upstream.requests[0]?.body).not.toContain("forbidden");
  });

  test("a key that is written with an escape stands once in what is forwarded, and other scripts come as they are", async () => {
    upstream.answer = (response) => void response.end(JSON.stringify(completion));
    const texts = [
      '{"\\u006dodel":"openai/gpt-x","messages":[{"role":"user","content":"x"}]}',
      '{"us\\u0065r":"body","model":"openai/gpt-x","messages":[{"role":"user","content":"x"}]}',
      '{"messages":[{"role":"user","content":"é 😀 \\u00e9 {\\"model\\":1}"}],"é":"ü","model":"openai/gpt-x"}',
    ];
    for (const text of texts) {
      const request = JSON.parse(text);
      const call = callOf(request, { raw: Buffer.from(text), user: "token" });
      await provider.chat(call, targetOf("openai", upstream, "gpt-x"), optionsOf());
      const { body = "" } = upstream.requests.at(-1) ?? {};
      expect(JSON.parse(body)).toEqual({ ...request, model: "gpt-x", user: "token" });
      expect(body.match(/"(model|\\u006dodel)":"/g)).toHaveLength(1);
    }
    const [, , other = ""] = texts;
    expect(upstream.requests.at(-1)?.body).toBe(
      other.replace("openai/gpt-x", "gpt-x").replace("{", '{"user":"token",'),
    );
  });

  test("a missing model is put in; the token's user wins; drop_unsupported stays here", async () => {
    upstream.answer = (response) => void response.end(JSON.stringify(completion));
    const call = callOf({ messages, user: "body", drop_unsupported: true }, { user: "token" });
    await provider.chat(call, targetOf("openai", upstream, "gpt-x"), optionsOf());
    expect(JSON.parse(upstream.requests[0]?.body ?? "")).toEqual({ messages, user: "token", model: "gpt-x" });
  });
});

describe("services that refuse what is not their own", () => {
  const call = { id: "call_abc", type: "function", function: { name: "f", arguments: "{}" } };
  const request = {
    model: "m",
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", content: null, refusal: null, reasoning_content: "hm", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_abc", content: "ok" },
    ],
  };
  async function sent(baseUrl: string, messages: unknown[] = request.messages, model = "m") {
    const target = { ...targetOf("openai", upstream, model), baseUrl };
    const io = { fetchImage: () => Promise.reject(new Error("unused")) };
    const prepared = await openaiWire(thoughtMemory()).prepare(
      callOf({ ...request, messages }, { user: "u1" }),
      target,
      io,
    );
    return JSON.parse(String(prepared.request.body));
  }

  test("Mistral's is asked for no usage, told of no user and no thoughts, and gets ids as it makes them", async () => {
    const body = await sent("https://api.mistral.ai/v1");
    expect(Object.keys(body).sort()).toEqual(["messages", "model", "stream"]);
    const [, assistant, result] = body.messages;
    expect(assistant).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [{ ...call, id: expect.stringMatching(/^[a-zA-Z0-9]{9}$/) }],
    });
    expect(result.tool_call_id).toBe(assistant.tool_calls[0].id);
  });

  test("what clients make of a message goes to Groq's and Mistral's without what these do not know", async () => {
    const dumped = {
      role: "assistant",
      content: "hi",
      refusal: null,
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: [{ ...call, index: 0 }],
    };
    const messages = [{ role: "user", name: "Ann", content: "x" }, dumped];
    const [user, answer] = (await sent("https://api.groq.com/openai/v1", messages)).messages;
    expect(user).toEqual(messages[0]);
    expect(answer).toEqual({ role: "assistant", content: "hi", tool_calls: [call] });
    const [nameless, plain] = (await sent("https://api.mistral.ai/v1", messages)).messages;
    expect(nameless).toEqual({ role: "user", content: "x" });
    expect(Object.keys(plain)).toEqual(["role", "content", "tool_calls"]);
  });

  test.each([
    ["https://api.mistral.ai/v1", "m"],
    ["https://nim.example.com/v1", "mistralai/mistral-small-4-119b-2603"],
    ["http://127.0.0.1:8000/v1", "devstral"],
    ["https://mine.services.ai.azure.com", "Ministral-3B"],
  ])("Mistral's models get turns in the order that they take, whoever serves them: %s %s", async (baseUrl, model) => {
    const said = [
      { role: "developer", content: "Be brief." },
      ...request.messages,
      { role: "user", content: "and?" },
      { role: "assistant", content: "" },
      { role: "system", content: "Go on." },
      { role: "user", content: "so?" },
    ];
    const got = (await sent(baseUrl, said, model)).messages as { role: string; content: string }[];
    expect(got.map(({ role }) => role).join()).toBe("system,system,user,assistant,tool,assistant,user,assistant,user");
    expect(got.slice(0, 2).map(({ content }) => content)).toEqual(["Be brief.", "Go on."]);
    expect(got.at(-2)?.content).not.toBe("");
    expect((await sent("https://llm.example.com/v1", said)).messages).toMatchObject(said);
    // What is in order stays as it came, empty answers with calls too.
    expect((await sent(baseUrl, request.messages, model)).messages).toHaveLength(3);
  });

  test("a list of no calls, as clients dump it, goes to no service that refuses it", async () => {
    const messages = [
      { role: "assistant", content: "hi", tool_calls: [], function_call: null, reasoning_content: "hm" },
      { role: "assistant", content: "", tool_calls: null },
    ];
    for (const host of ["api.openai.com", "mine.openai.azure.com", "api.groq.com/openai"])
      expect((await sent(`https://${host}/v1`, messages)).messages, host).toEqual([
        { role: "assistant", content: "hi" },
        { role: "assistant", content: "" },
      ]);
    expect((await sent("https://llm.example.com/v1", messages)).messages).toEqual(messages);
  });

  test("what the developer says is the system's word where nobody knows a developer", async () => {
    const messages = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: "x" },
    ];
    for (const [baseUrl, role] of [
      ["https://api.deepseek.com/v1", "system"],
      ["https://api.mistral.ai/v1", "system"],
      ["http://127.0.0.1:11434/v1", "system"],
      ["https://api.openai.com/v1", "developer"],
      ["https://llm.example.com/v1", "developer"],
    ] as const)
      expect((await sent(baseUrl, messages)).messages).toEqual([{ role, content: "Be brief." }, messages[1]]);
  });

  test.each([
    ["https://api.deepseek.com/v1", "m", { max_completion_tokens: 9 }, { max_tokens: 9 }],
    ["http://127.0.0.1:11434/v1", "m", { max_completion_tokens: 9 }, { max_tokens: 9 }],
    ["https://api.mistral.ai/v1", "m", { max_completion_tokens: 9, seed: 0 }, { max_tokens: 9, random_seed: 0 }],
    ["https://api.openai.com/v1", "gpt-5.4", { max_tokens: 9 }, { max_completion_tokens: 9 }],
    ["https://api.openai.com/v1", "gpt-4o", { max_tokens: 9 }, { max_tokens: 9 }],
    ["https://mine.openai.azure.com/openai/v1", "gpt-5-mini", { max_tokens: 9 }, { max_completion_tokens: 9 }],
    ["https://llm.example.com/v1", "gpt-5.4", { max_tokens: 9 }, { max_tokens: 9 }],
    ["https://llm.example.com/v1", "m", { max_completion_tokens: 9 }, { max_completion_tokens: 9 }],
  ])("%s (%s) has %j under the names that it knows", async (baseUrl, model, asked, named) => {
    const prepared = await openaiWire(thoughtMemory()).prepare(
      callOf({ messages, ...asked }),
      { ...targetOf("openai", upstream, model), baseUrl },
      { fetchImage: () => Promise.reject(new Error("unused")) },
    );
    expect(JSON.parse(String(prepared.request.body))).toEqual({ model, messages, ...named });
  });

  test("marks for Claude's cache go to no service that refuses them", async () => {
    const cache_control = { type: "ephemeral" };
    const messages = [{ role: "user", content: [{ type: "text", text: "x", cache_control }], cache_control }];
    const tools = [{ type: "function", function: { name: "f", cache_control }, cache_control }];
    const request = { model: "m", messages, tools };
    await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf());
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? "")).toEqual(request);
    const prepared = await openaiWire(thoughtMemory()).prepare(
      callOf(request),
      { ...targetOf("openai", upstream, "m"), baseUrl: null },
      { fetchImage: () => Promise.reject(new Error("unused")) },
    );
    expect(JSON.parse(String(prepared.request.body))).toEqual({
      model: "m",
      messages: [{ role: "user", content: [{ type: "text", text: "x" }] }],
      tools: [{ type: "function", function: { name: "f" } }],
    });
  });

  test("Groq's is told of no thoughts; others have theirs back", async () => {
    const groq = await sent("https://api.groq.com/openai/v1");
    expect(groq).toMatchObject({ user: "u1", stream_options: { include_usage: true } });
    expect(groq.messages[1]).toEqual({ role: "assistant", content: null, tool_calls: [call] });
    expect((await sent("https://api.deepseek.com/v1")).messages).toEqual(request.messages);
    const bare = request.messages.map(({ reasoning_content: _thought, ...rest }: Record<string, unknown>) => rest);
    // Refused without any, whoever forgot it.
    expect((await sent("https://api.deepseek.com/v1", bare)).messages[1]).toMatchObject({ reasoning_content: " " });
    expect((await sent("https://llm.example.com/v1", bare)).messages).toEqual(bare);
    // What was added to the server's own `reasoning` does not go back to it.
    const own = { role: "assistant", content: "hi", reasoning: "hm" };
    const [back] = (await sent("https://openrouter.ai/api/v1", [{ ...own, reasoning_content: "hm" }])).messages;
    expect(back).toEqual(own);
    // Another server's is refused by OpenAI's as well, and is as good as none where `reasoning_content` is asked for.
    const told = { role: "assistant", content: null, tool_calls: [call] };
    for (const more of [{ reasoning: "hm" }, { reasoning: "hm", reasoning_content: "hm" }]) {
      const messages = [{ ...told, ...more }];
      for (const host of ["api.openai.com", "mine.openai.azure.com", "api.groq.com/openai"])
        expect((await sent(`https://${host}/v1`, messages)).messages, host).toEqual([told]);
      expect((await sent("https://api.deepseek.com/v1", messages)).messages[0]).toMatchObject({
        reasoning_content: "hm",
      });
    }
  });
});

describe("what comes back whole", () => {
  test("the vendor's bytes with the cost put in, and the usage partitioned", async () => {
    const sent = JSON.stringify(completion, null, 2);
    upstream.answer = (response) => void response.setHeader("content-type", "application/json").end(sent);
    const outcome = await provider.chat(callOf({ model: "m", messages }), targetOf("openai", upstream), optionsOf());
    if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
    expect(outcome.usage).toEqual({ input: 6, cached: 4, cache_write: 0, output: 2, reasoning: 5 });
    expect(outcome.body.toString().replace('"cost_usd":0.5,', "")).toBe(sent);
    expect(JSON.parse(outcome.body.toString()).usage.cost_usd).toBe(0.5);
    specification()?.completion(JSON.parse(outcome.body.toString()));
  });

  test.each([
    ["alone", '{"usage":{}}'],
    ["with space", '{ "usage" : {\n"a":1 } , "b":2}'],
    ["beside another one that lies deeper", '{"x":{"usage":{"z":1}},"usage":{"a":{"b":2}}}'],
    ["behind a text that quotes it", '{"a":"\\"usage\\"","usage":{"k":"}{","z":[{"q":1}]}}'],
    ["beside other scripts", '{"m":"é","usage":{"a":1}}'],
  ])("the cost goes into the usage that readers find: %s", (_name, text) => {
    const { usage, ...rest } = JSON.parse(text);
    const priced = JSON.parse(String(spliceCost(readAnswer(Buffer.from(text)), 0.5)));
    expect(priced).toEqual({ ...rest, usage: { ...usage, cost_usd: 0.5 } });
  });

  test.each([
    ["under an escaped key", '{"us\\u0061ge":{"a":1},"m":{"usage":{}}}'],
    ["twice", '{"usage":{"a":1},"usage":{"b":1}}'],
    ["which has a cost already", '{"usage":{"cost_usd":9,"a":1}}'],
    ["twice, once escaped", '{"usage":{"a":1},"us\\u0061ge":{"b":1}}'],
  ])("an answer is written anew where readers may not agree on its usage: %s", (_name, text) => {
    expect(spliceCost(readAnswer(Buffer.from(text)), 0.5)).toBeNull();
  });

  test("the cost of a server that says one is exchanged for ours", async () => {
    const sent = JSON.stringify({ ...completion, usage: { ...completion.usage, cost_usd: 9 } });
    upstream.answer = (response) => void response.setHeader("content-type", "application/json").end(sent);
    const outcome = await provider.chat(callOf({ model: "m", messages }), targetOf("openai", upstream), optionsOf());
    if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
    expect(JSON.parse(outcome.body.toString()).usage).toEqual({ ...completion.usage, cost_usd: 0.5 });
  });

  test("no cost goes into a usage that is null, though another one lies below what is scanned", () => {
    const text = `{"usage":null,"x":${"[".repeat(1_001)}${"]".repeat(1_001)},"usage":{"a":1}}`;
    expect(spliceCost(readAnswer(Buffer.from(text)), 0.5)).toBeNull();
  });

  test("bytes that are no UTF-8 stay as they are beside the cost", () => {
    const sent = Buffer.from('{"m":"\xff","usage":{"a":1}}', "latin1");
    const priced = spliceCost(readAnswer(sent), 0.5)?.toString("latin1");
    expect(priced).toBe('{"m":"\xff","usage":{"cost_usd":0.5,"a":1}}');
  });

  test.each([
    ["invalid JSON", '{"choices":[', 200],
    ["an error behind 200", '{"error":{"message":"sk-canary-0123456789abcdef is bad","type":"server_error"}}', 200],
    [
      "a refusal that quotes it as its code and parameter",
      '{"error":{"message":"m","type":"t","code":"sk-canary-0123456789abcdef","param":"header sk-canary-0123456789abcdef"}}',
      400,
    ],
    ["no choices", '{"choices":[]}', 200],
    ["an array", "[]", 200],
  ])("%s is a failure that names no key", async (_name, body, status) => {
    upstream.answer = (response) => void response.writeHead(status, { "content-type": "application/json" }).end(body);
    const outcome = await provider.chat(callOf({ model: "m", messages }), targetOf("openai", upstream), optionsOf());
    expect(outcome.kind).toBe("failure");
    expect(JSON.stringify(outcome)).not.toContain("canary");
  });

  test("an address and headers that a server quotes name no key", async () => {
    upstream.answer = (response, { url, headers }) => {
      const message = `Cannot POST ${url} with ${headers["x-own-token"]}`;
      response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));
    };
    const target = targetOf("openai", upstream);
    const outcome = await provider.chat(
      callOf({ model: "m", messages }),
      {
        ...target,
        baseUrl: `${target.baseUrl}?tenant=number-7&subscription-key=canary%2F1`,
        headers: { "x-own-token": "canary-2" },
      },
      optionsOf(),
    );
    const message = "Cannot POST /v1/chat/completions?tenant=number-7&subscription-key=[redacted] with [redacted]";
    expect(outcome).toMatchObject({ failure: { message } });
  });

  test("an error behind 200 is the same failure where a stream was asked for", async () => {
    const ask = async (answer: object) => {
      upstream.answer = (response) =>
        void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
      const call = callOf({ model: "m", messages, stream: true });
      return await provider.chat(call, targetOf("openai", upstream), optionsOf());
    };
    expect(await ask({ error: { message: "slow", code: 429 } })).toMatchObject({ failure: { kind: "rate_limit" } });
    expect(await ask({})).toMatchObject({ failure: { kind: "protocol" } });
  });

  test("a whole answer where a stream was asked for becomes one", async () => {
    const call = { type: "function", function: { name: "f", arguments: "{}" } };
    const tool_calls = [
      { ...call, id: "c0", index: 0 },
      { ...call, id: "c1", index: 0 },
    ];
    const message = { role: "assistant", content: "hi", reasoning_content: "why", tool_calls };
    const choices = [0, 1].map((index) => ({ index, message, logprobs: null, finish_reason: "tool_calls" }));
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    upstream.answer = (response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ choices, usage }));
    for (const asked of [true, false]) {
      const request = { model: "m", messages, stream: true, stream_options: { include_usage: asked } };
      const outcome = await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf());
      const { events, done, end } = await collect(outcome);
      for (const chunk of events) specification()?.chunk(chunk);
      const delta = { ...message, tool_calls: tool_calls.map((one, index) => ({ ...one, index })) };
      expect(events.slice(2, 4)).toMatchObject([
        { choices: [{ index: 1, delta, finish_reason: null }] },
        { choices: [{ index: 1, delta: {}, finish_reason: "tool_calls" }] },
      ]);
      expect(events.slice(4)).toMatchObject(asked ? [{ choices: [], usage: { ...usage, cost_usd: 0.5 } }] : []);
      expect(done).toBe(true);
      expect(end).toMatchObject({ result: "completed", usage: { input: 3, output: 2 } });
    }
    const stop = new AbortController();
    const options = optionsOf({ signal: stop.signal });
    const outcome = await provider.chat(
      callOf({ model: "m", messages, stream: true }),
      targetOf("openai", upstream),
      options,
    );
    const never = { write: () => false, drained: () => new Promise<void>(() => {}) };
    const end = outcome.kind === "stream" && outcome.pipe(never);
    stop.abort();
    expect(await end).toMatchObject({ result: "aborted", usage: { input: 3, output: 2 } });
  });

  test.each([
    ['{"detail":[{"loc":["body","n"],"msg":"too many","input":"secret"}]}', "body.n: too many"],
    ['{"object":"error","message":{"detail":[{"loc":["body","n"],"msg":"no"},{"msg":"b"}]}}', "body.n: no; b"],
  ])("what FastAPI and Mistral say is wrong is shown: %s", async (body, message) => {
    upstream.answer = (response) => void response.writeHead(422).end(body);
    const outcome = await provider.chat(callOf({ model: "m", messages }), targetOf("openai", upstream), optionsOf());
    expect(outcome).toMatchObject({ failure: { status: 422, message } });
  });

  test.each([
    [400, '{"error":{"message":"bad","type":"invalid_request_error","param":"messages","code":"x"}}', "invalid", 400],
    [401, '{"error":{"message":"no"}}', "auth", 401],
    [403, "", "permission", 403],
    [404, "<html>", "not_found", 404],
    [413, "", "invalid", 413],
    [424, "", "server", 502],
    [429, '{"error":{"code":"insufficient_quota"}}', "quota", 429],
    [429, '{"error":{"message":"slow"}}', "rate_limit", 429],
    [500, "", "internal", 502],
    [503, "", "overloaded", 503],
    [529, "", "overloaded", 503],
    [302, "", "server", 502],
  ])("status %i %s is %s", async (status, body, kind, shown) => {
    upstream.answer = (response) => void response.writeHead(status, { "retry-after": "7" }).end(body);
    const outcome = await provider.chat(callOf({ model: "m", messages }), targetOf("openai", upstream), optionsOf());
    expect(outcome).toMatchObject({ kind: "failure", failure: { kind, status: shown } });
    if (outcome.kind === "failure") {
      expect(outcome.failure.retryAfterMs).toBe(kind === "rate_limit" || kind === "overloaded" ? 7000 : null);
    }
  });
});

test.each(["openai", "azure", "anthropic", "google", "bedrock"] as const)(
  "no redirect is followed with %s's key, and what to do about it is said",
  async (kind) => {
    upstream.answer = (response) => void response.writeHead(308, { location: `${upstream.url}/elsewhere` }).end();
    const call = callOf({ model: "m", messages });
    const outcome = await createProviders(agent)[kind].chat(call, targetOf(kind, upstream), optionsOf());
    expect(upstream.requests).toHaveLength(1);
    expect(outcome).toMatchObject({ failure: { message: expect.stringContaining("base_url must be where it leads") } });
  },
);

describe("streams", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const custom = { index: 0, id: "c1", type: "custom", custom: { name: "f", input: "" } };
  const list = [
    chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }], { usage: null }),
    chunk([{ index: 0, delta: { content: "hé" }, finish_reason: null }], { usage: null }),
    chunk([{ index: 0, delta: { content: " 🎉" }, finish_reason: null }], { usage: null }),
    chunk([{ index: 0, delta: { tool_calls: [custom] }, finish_reason: null }], { usage: null }),
    chunk([{ index: 0, delta: {}, finish_reason: "tool_calls" }], { usage: null }),
    chunk([], { usage }),
  ];

  test.each([1, 2, 3, 7, 100_000])("whatever the pieces (%i bytes), with CRLF, CR and comments too", async (size) => {
    for (const newline of ["\n", "\r\n", "\r"]) {
      const text = `: hello\n\ndata:\n\n${events(list)}`.replaceAll("\n", newline);
      upstream.answer = async (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length; at += size) {
          response.write(bytes.subarray(at, at + size));
          if (size > 2) await new Promise((resolve) => setImmediate(resolve));
        }
        // A CR ends its line by itself: nothing needs to come behind the last one.
        if (newline !== "\r") response.end();
      };
      const request = { model: "m", messages, stream: true, stream_options: { include_usage: true } };
      const got = await collect(await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf()));
      expect(got.done).toBe(true);
      expect(got.end).toMatchObject({ result: "completed", usage: { input: 3, output: 2 } });
      expect(got.events.at(-1)).toMatchObject({ choices: [], usage: { ...usage, cost_usd: 0.5 } });
      expect(got.events.slice(0, -1)).toEqual(list.slice(0, -1));
    }
  });

  test.each([
    [{ role: "assistant", content: "", reasoning_details: [], images: [], audio: {} }, false],
    [{ content: "", images: [{ type: "image_url" }] }, true],
    [{ content: "", audio: { id: "a" } }, true],
  ])("a stream has begun with what it holds, not with the names of it: %j", (delta, begun) => {
    const decoder = decoderOf(() => {});
    decoder.push(Buffer.from(events([chunk([{ index: 0, delta, finish_reason: null }])], "")));
    expect(decoder.started()).toBe(begun);
  });

  test.each([true, false])("what a moderation found comes along (usage asked for: %s)", async (asked) => {
    const failed = { type: "error", code: "moderation_failed", message: "it did not work" };
    const moderation = { input: failed, output: failed };
    const [begin] = list;
    const end = chunk([{ index: 0, delta: {}, finish_reason: "stop" }]);
    for (const last of [[chunk([], { moderation }), chunk([], { usage })], [chunk([], { moderation, usage })]]) {
      upstream.answer = (response) =>
        void response.writeHead(200, { "content-type": "text/event-stream" }).end(events([begin, end, ...last]));
      const request = { model: "m", messages, stream: true, moderation: {}, stream_options: { include_usage: asked } };
      const got = await collect(await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf()));
      for (const one of got.events) specification()?.chunk(one);
      const beside = got.events.slice(2) as { choices: unknown; moderation?: unknown; usage?: unknown }[];
      expect(beside.map(({ choices }) => choices)).toEqual(Array(asked ? last.length : 1).fill([]));
      expect(beside.filter((one) => one.moderation)).toMatchObject([{ moderation }]);
      expect(beside.filter((one) => one.usage)).toMatchObject(asked ? [{ usage }] : []);
    }
  });

  test.each([1, 2, Number.POSITIVE_INFINITY])(
    "what Azure's filters found in the prompt comes along (in pieces of %s bytes)",
    async (size) => {
      const found = [{ prompt_index: 0, content_filter_results: { hate: { filtered: false, severity: "safe" } } }];
      const sent = Buffer.from(events([{ ...chunk([]), id: "", model: "", prompt_filter_results: found }, ...list]));
      let text = "";
      const decoder = decoderOf((frame) => {
        text += Buffer.from(frame as string);
      });
      for (let at = 0; at < sent.length; at += size) decoder.push(sent.subarray(at, at + size));
      decoder.end();
      const got = text
        .split("\n\n")
        .filter((one) => one.startsWith("data: {"))
        .map((one) => JSON.parse(one.slice(6)));
      expect(got.map((one) => one.prompt_filter_results)).toEqual([found, ...Array(got.length - 1).fill(undefined)]);
      expect(got.every(({ choices }) => choices.length === 1)).toBe(true);
    },
  );

  test("a stream whose every chunk says its role begins with its first word, not at its end", () => {
    const decoder = decoderOf(() => {});
    const say = (content: string) =>
      decoder.push(
        Buffer.from(events([chunk([{ index: 0, delta: { role: "assistant", content }, finish_reason: null }])], "")),
      );
    say("");
    expect(decoder.started()).toBe(false);
    say("hi");
    expect(decoder.started()).toBe(true);
  });

  test("choices beyond all number are shown and not remembered", () => {
    const kept: string[] = [];
    const decoder = decoderOf(() => {}, { keep: (_caller, id) => kept.push(id), recall: () => undefined });
    for (let index = 0; index < 300; index++) {
      const call = { index: 0, id: `call_${index}`, type: "function", function: { name: "f", arguments: "{}" } };
      const delta = { reasoning_content: "hm", tool_calls: [call] };
      decoder.push(Buffer.from(events([chunk([{ index, delta, finish_reason: null }])], "")));
    }
    decoder.push(Buffer.from("data: [DONE]\n\n"));
    // One for each choice, and one for the target.
    expect(new Set(kept).size).toBe(129);
  });

  // A member that no two events share has each of them parsed; without it nearly all are only found to be like the one before.
  test("events that resemble each other are counted and passed on as if each had been looked at alone", () => {
    const { below, pick } = seeded(7);
    const texts = ["", "a", ' "quoted"', "\n\n", "\\n", "hé 🎉", "\u0007", "日本", '"content":"', "data: [DONE]\n\n"];
    const call = { index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } };
    for (let round = 0; round < 200; round++) {
      const deltas = [
        () => ({ content: pick(texts) }),
        () => ({ content: pick(texts) }),
        () => ({ role: "assistant", content: pick(texts), refusal: null }),
        () => ({ content: pick(texts), reasoning_content: pick(texts) }),
        () => ({ content: pick([["x"], null, { content: "x" }]) }),
        () => ({ content: "", tool_calls: [call] }),
      ];
      const kinds = Array.from({ length: 2 }, () => pick(deltas));
      const heads = [{}, { service_tier: pick(["flex", "default"]) }, { obfuscation: "a" }, { usage: null }];
      const list = Array.from({ length: 30 }, (_, at) =>
        chunk(
          [
            {
              index: pick([0, 0, 0, 1]),
              delta: pick(kinds)(),
              finish_reason: pick([null, null, null, at > 25 ? "stop" : null]),
            },
          ],
          {
            system_fingerprint: pick(["fp_1", "fp_2"]),
            ...pick(heads),
          },
        ),
      );
      const read = (all: unknown[]) => {
        const bytes = Buffer.from(events(all));
        let out = "";
        const decoder = decoderOf((frame) => (out += Buffer.from(frame).toString()));
        for (let at = 0; at < bytes.length; ) {
          const next = at + 1 + below(700);
          decoder.push(bytes.subarray(at, next));
          at = next;
        }
        return { out, usage: decoder.usage(), started: decoder.started(), finished: decoder.finished() };
      };
      const alike = read(list);
      const alone = read(list.map((one, at) => ({ ...one, alone: at })));
      expect({ ...alone, out: alone.out.replaceAll(/,"alone":\d+/g, "") }).toEqual(alike);
    }
  });

  test.each(["\t", '"', "\\x", "\\"])("an event that is no JSON (%j) is none behind many that are", (wrong) => {
    const decoder = decoderOf(() => {});
    const event = (text: string) =>
      `data: ${JSON.stringify(chunk([{ index: 0, delta: { content: "?" }, finish_reason: null }])).replace("?", () => text)}\n\n`;
    for (let at = 0; at < 5; at++) decoder.push(Buffer.from(event("a")));
    expect(() => decoder.push(Buffer.from(event(wrong)))).toThrow("not valid JSON");
  });

  test("an event of megabytes in many small pieces costs as much as its bytes, not as their square", () => {
    const one = chunk([
      { index: 0, delta: { role: "assistant", content: "x".repeat(4_000_000) }, finish_reason: "stop" },
    ]);
    const bytes = Buffer.from(events([one]));
    const out: (Uint8Array | string)[] = [];
    const decoder = decoderOf((frame) => out.push(frame));
    const before = process.cpuUsage();
    for (let at = 0; at < bytes.length; at += 512) decoder.push(bytes.subarray(at, at + 512));
    // Microseconds. Were every piece joined with all before it, it would be half a minute.
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
    expect(decoder.finished()).toBe(true);
    expect(Buffer.concat(out.map((frame) => Buffer.from(frame))).equals(bytes)).toBe(true);
  });

  test("events in another dress than OpenAI's own come in OpenAI's, for clients that know no other", async () => {
    const dressed = list.map((one, at) => `id: ${at}\nevent: message\ndata:${JSON.stringify(one)}\n\n`).join("");
    for (const sent of [dressed, events(list, "")]) {
      upstream.answer = (response) =>
        void response
          .writeHead(200, { "content-type": "text/event-stream" })
          .end(`\uFEFF${sent}event: ping\n\n: alive\n\ndata: [DONE]`);
      const request = { model: "m", messages, stream: true };
      const got = await collect(await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf()));
      const frames = list.slice(0, -1).map((one) => `data: ${JSON.stringify(one)}`);
      expect(got.text.split("\n\n")).toEqual([...frames, ": alive", "data: [DONE]", ""]);
    }
  });

  // A server written by hand forgets the type, or takes the first that comes to mind.
  test.each([
    ["application/json", `\n${events(list)}`],
    [undefined, events(list)],
    [undefined, ` \uFEFF${JSON.stringify(completion)}`],
    ["text/event-stream", JSON.stringify(completion)],
  ])("what an answer is it says itself, whatever its type says: %s", async (type, body) => {
    upstream.answer = (response) => {
      if (type) response.setHeader("content-type", type);
      for (const piece of Buffer.from(body)) response.write(Buffer.of(piece));
      response.end();
    };
    const call = callOf({ model: "m", messages, stream: true });
    const got = await collect(await provider.chat(call, targetOf("openai", upstream), optionsOf()));
    expect(got.done).toBe(true);
    expect(got.end.result).toBe("completed");
    expect(got.text).toContain('"delta":{');
  });

  test("usage is metered without being shown to who did not ask", async () => {
    upstream.answer = (response) =>
      void response.writeHead(200, { "content-type": "text/event-stream" }).end(events(list));
    const got = await collect(
      await provider.chat(callOf({ model: "m", messages, stream: true }), targetOf("openai", upstream), optionsOf()),
    );
    expect(JSON.parse(upstream.requests[0]?.body ?? "").stream_options).toEqual({ include_usage: true });
    expect(got.events.filter((event) => (event as { usage?: unknown }).usage)).toEqual([]);
    expect(got.end.usage).toMatchObject({ input: 3, output: 2 });
    expect(got.done).toBe(true);
  });

  test.each([
    [
      { prompt_tokens: 5, total_tokens: 9 },
      { input: 5, output: 4 },
    ],
    [
      { completion_tokens: 4, prompt_tokens: null, total_tokens: 9 },
      { input: 5, output: 4 },
    ],
    [{ prompt_tokens: 5 }, { output: 2, estimated: true }],
    [
      { prompt_tokens: 5, completion_tokens: -1, total_tokens: 4 },
      { output: 2, estimated: true },
    ],
  ])("half a count (%j) is filled up by the total, else by an estimate", async (half, counted) => {
    const shown = list.slice(0, -1).filter((one) => !JSON.stringify(one).includes("tool_calls"));
    upstream.answer = (response) =>
      void response
        .writeHead(200, { "content-type": "text/event-stream" })
        .end(events([...shown, chunk([], { usage: half })]));
    const request = { model: "m", messages, stream: true, stream_options: { include_usage: true } };
    const got = await collect(await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf()));
    expect(got.end.usage).toMatchObject(counted);
    const { usage } = got.events.at(-1) as { usage: Record<string, number> };
    expect(usage["completion_tokens"]).toBe(counted.output);
    expect(usage["total_tokens"]).toBe((usage["prompt_tokens"] ?? 0) + counted.output);
  });

  test("an answer that nobody counted is estimated at the same whole and streamed", async () => {
    const call = { id: "c1", type: "function", function: { name: "look", arguments: '{"at":"the sky"}' } };
    const said = { role: "assistant", content: "Hello, you", reasoning_content: "Who is it?", tool_calls: [call] };
    const deltas = [
      { role: "assistant", reasoning_content: "Who is" },
      { reasoning_content: " it?", content: "Hello," },
      { content: " you", tool_calls: [{ index: 0, ...call, function: { name: "look", arguments: "" } }] },
      ...['{"at":', '"the sky"}'].map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
    ];
    const pieces = deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }]));
    const end = chunk([{ index: 0, delta: {}, finish_reason: "tool_calls" }]);
    upstream.answer = (response, _request, body) => {
      if (!body.includes('"stream":true')) {
        const choices = [{ index: 0, message: said, finish_reason: "tool_calls" }];
        return void response.end(
          JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "m", choices }),
        );
      }
      response.writeHead(200, { "content-type": "text/event-stream" }).end(events([...pieces, end]));
    };
    const ask = (more: object) =>
      provider.chat(callOf({ model: "m", messages, ...more }), targetOf("openai", upstream), optionsOf());
    const whole = await ask({});
    const { end: streamed } = await collect(await ask({ stream: true }));
    expect(whole).toMatchObject({ usage: { output: 12, estimated: true } });
    expect(streamed.usage).toEqual((whole as { usage?: unknown }).usage);
  });

  test("without usage from the provider an estimate is metered, and shown if asked", async () => {
    upstream.answer = (response) =>
      void response.writeHead(200, { "content-type": "text/event-stream" }).end(events(list.slice(0, -1)));
    const request = { model: "m", messages, stream: true, stream_options: { include_usage: true } };
    const got = await collect(await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf()));
    expect(got.end.usage.estimated).toBe(true);
    expect(got.end.usage.output).toBeGreaterThan(0);
    specification()?.chunk(got.events.at(-1));
  });

  test("the recorded OpenAI and xAI streams validate chunk by chunk, and say the same", async () => {
    for (const name of ["openai/openai-text", "openai-compatible/xai-text", "openai-compatible/xai-tool-call"]) {
      const path = sharedPath(`provider-fixtures/${name}.chunks.txt`);
      if (!path) return;
      const recorded = readFileSync(path, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      upstream.answer = (response) =>
        void response.writeHead(200, { "content-type": "text/event-stream" }).end(events(recorded));
      const request = { model: "m", messages, stream: true, stream_options: { include_usage: true } };
      const got = await collect(await provider.chat(callOf(request), targetOf("openai", upstream), optionsOf()));
      for (const event of got.events) specification()?.chunk(event);
      const said = (list: unknown[]) =>
        list.flatMap((one) => (one as { choices: { delta: object }[] }).choices.map((choice) => choice.delta));
      expect(said(got.events)).toEqual(said(recorded));
    }
  });
});

test("an address as the portal shows it, or another client has it, leads to the API all the same", async () => {
  const asked = async (kind: "azure" | "openai", base: string) => {
    const target = { ...targetOf(kind, upstream), baseUrl: upstream.url + base };
    await createProviders(agent)[kind].chat(callOf({ model: "m", messages: [] }), target, optionsOf());
    return upstream.requests.at(-1)?.path;
  };
  for (const base of [
    "/openai/v1/chat/completions",
    "/openai/v1/responses",
    "/openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01-preview",
    "/openai/responses?api-version=2025-04-01-preview",
    "/openai/deployments/gpt-4o",
  ])
    expect(await asked("azure", base), base).toBe("/openai/v1/chat/completions");
  expect(await asked("azure", "/a/openai/v1?api-version=preview")).toBe(
    "/a/openai/v1/chat/completions?api-version=preview",
  );
  expect(await asked("openai", "/v1/chat/completions?tenant=7")).toBe("/v1/chat/completions?tenant=7");
});

test.each([
  ["https://a/v1/", "/chat", undefined, "https://a/v1/chat"],
  ["https://a/v1/?tenant=7&x=a%20b", "/chat", undefined, "https://a/v1/chat?tenant=7&x=a%20b"],
  ["https://a?api-version=1", "/openai/v1/chat", /\/openai(\/v1)?$/, "https://a/openai/v1/chat?api-version=1"],
  [
    "https://a/openai/v1/?api-version=1",
    "/openai/v1/chat",
    /\/openai(\/v1)?$/,
    "https://a/openai/v1/chat?api-version=1",
  ],
  ["https://a/openai", "/openai/v1/chat", /\/openai(\/v1)?$/, "https://a/openai/v1/chat"],
  ["https://a?x=1", "/m:stream?alt=sse", undefined, "https://a/m:stream?alt=sse&x=1"],
])("under %s lies %s", (base, path, own, url) => {
  expect(endpointUnder(base, path, own)).toBe(url);
});
