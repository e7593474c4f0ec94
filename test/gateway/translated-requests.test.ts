// What leaves for the translated providers, case by case of their documentation, as a real server receives it.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { AwsV4Signer } from "aws4fetch";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ChatCall, ChatOutcome } from "#daemon/gateway/providers/adapter.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { type Ecosystem, good } from "./good-answers.ts";
import { agent, callOf, optionsOf, startUpstream, targetOf, type Upstream } from "./upstream.ts";

let upstream: Upstream;
const providers = createProviders(agent);
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());
beforeEach(() => {
  upstream.requests.length = 0;
});

interface Sent {
  readonly body: Record<string, unknown>;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly outcome: ChatOutcome;
}

async function send(kind: Ecosystem, request: object, model: string, more: Partial<ChatCall> = {}): Promise<Sent> {
  upstream.answer = (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(good[kind].json);
  const outcome = await providers[kind].chat(callOf(request, more), targetOf(kind, upstream, model), optionsOf());
  const seen = upstream.requests.at(-1);
  const body = seen ? JSON.parse(seen.body) : {};
  return { body, path: seen?.path ?? "", headers: (seen?.headers ?? {}) as Record<string, string>, outcome };
}

const tool = (name: string) => ({
  type: "function",
  function: {
    name,
    description: `does ${name}`,
    parameters: { type: "object", properties: { a: { type: "string" } } },
  },
});
const user = (content: unknown) => ({ role: "user", content });
const called = (...ids: string[]) => ({
  role: "assistant",
  content: "let me see",
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: `f_${id}`, arguments: `{"a":"${id}"}` } })),
});
const result = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
const conversation = [
  { role: "system", content: "one" },
  { role: "developer", content: [{ type: "text", text: "two" }] },
  user("go"),
  called("t1", "t2"),
  result("t1", "sunny"),
  result("t2", '{"degrees": 20}'),
  user("and?"),
];
const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const jsonSchema = { type: "json_schema", json_schema: { name: "answer", schema } };

describe("anthropic", () => {
  const model = "claude-haiku-4-5";

  test("path, version, key; system apart; max_tokens always; results of one turn together and first", async () => {
    const { body, path, headers } = await send("anthropic", { messages: conversation, stop: "END", user: "u1" }, model);
    expect(path).toBe("/v1/messages");
    expect(headers).toMatchObject({ "x-api-key": "sk-canary-0123456789abcdef", "anthropic-version": "2023-06-01" });
    expect(body).toMatchObject({
      model,
      system: [{ text: "one" }, { text: "two" }],
      stop_sequences: ["END"],
      metadata: { user_id: "u1" },
      max_tokens: expect.any(Number),
    });
    expect(body["messages"]).toEqual([
      { role: "user", content: [{ type: "text", text: "go" }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "let me see" },
          { type: "tool_use", id: "t1", name: "f_t1", input: { a: "t1" } },
          { type: "tool_use", id: "t2", name: "f_t2", input: { a: "t2" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "sunny" },
          { type: "tool_result", tool_use_id: "t2", content: '{"degrees": 20}' },
          { type: "text", text: "and?" },
        ],
      },
    ]);
  });

  test.each([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "any" }],
    [
      { type: "function", function: { name: "b" } },
      { type: "tool", name: "b" },
    ],
  ])("tool_choice %j", async (choice, expected) => {
    const { body } = await send(
      "anthropic",
      { messages: [user("x")], tools: [tool("a"), tool("b")], tool_choice: choice },
      model,
    );
    expect(body["tool_choice"]).toEqual(expected);
    expect(body["tools"]).toMatchObject([{ name: "a", input_schema: { type: "object" } }, { name: "b" }]);
  });

  test("parallel_tool_calls false; allowed_tools; tools without parameters", async () => {
    const request = {
      messages: [user("x")],
      tools: [tool("a"), { type: "function", function: { name: "b" } }],
      parallel_tool_calls: false,
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "b" } }] },
      },
    };
    const { body } = await send("anthropic", request, model);
    expect(body["tools"]).toEqual([{ name: "b", input_schema: { type: "object", properties: {} } }]);
    expect(body["tool_choice"]).toEqual({ type: "any", disable_parallel_tool_use: true });
  });

  test("a JSON schema: native where the model keeps it, else by a forced tool; the notes say which", async () => {
    const native = await send("anthropic", { messages: [user("x")], response_format: jsonSchema }, model);
    expect(native.body["output_config"]).toEqual({
      format: { type: "json_schema", schema: { ...schema, additionalProperties: false } },
    });
    expect(native.outcome).toMatchObject({ notes: { responseFormat: "native" } });
    const emulated = await send(
      "anthropic",
      { messages: [user("x")], response_format: jsonSchema },
      "claude-3-5-haiku-latest",
    );
    expect(emulated.body["tool_choice"]).toMatchObject({ type: "tool", name: "json_answer" });
    expect(emulated.outcome).toMatchObject({ notes: { responseFormat: "emulated" } });
  });

  test("a schema with limits says them in words; one that is open or refers to itself is emulated", async () => {
    const ask = async (schema: object) => {
      const format = { type: "json_schema", json_schema: { name: "answer", schema } };
      const { body, outcome } = await send("anthropic", { messages: [user("x")], response_format: format }, model);
      return { body, notes: outcome.kind === "completion" ? outcome.notes : null };
    };
    const limited = await ask({
      type: "object",
      properties: { n: { type: "number", minimum: 0, maximum: 1, description: "share" }, minimum: { type: "string" } },
      required: ["n", "minimum"],
    });
    expect(limited.body["output_config"]).toMatchObject({
      format: {
        schema: {
          properties: {
            n: { type: "number", description: "share (minimum: 0, maximum: 1)" },
            minimum: { type: "string" },
          },
          additionalProperties: false,
        },
      },
    });
    const open = await ask({ type: "object", additionalProperties: { type: "integer" } });
    const tree = await ask({
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] } },
      $ref: "#/$defs/node",
    });
    for (const emulated of [open, tree]) {
      expect(emulated.notes).toMatchObject({ responseFormat: "emulated" });
      expect(emulated.body["tool_choice"]).toMatchObject({ name: "json_answer" });
    }
  });

  test("reasoning effort: a budget on top of max_tokens, an effort for newer models", async () => {
    const budget = await send("anthropic", { messages: [user("x")], reasoning_effort: "low", max_tokens: 100 }, model);
    expect(budget.body).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2048 }, max_tokens: 2148 });
    const effort = await send("anthropic", { messages: [user("x")], reasoning_effort: "high" }, "claude-opus-4-6");
    expect(effort.body).toMatchObject({ thinking: { type: "adaptive" }, output_config: { effort: "high" } });
  });

  test("cache breakpoints become cache_control, and cache points at Bedrock", async () => {
    const marked = { type: "text", text: "long", prompt_cache_breakpoint: { mode: "explicit" } };
    const messages = [{ role: "system", content: [marked] }, user([marked, { type: "text", text: "short" }])];
    const { body } = await send("anthropic", { messages }, model);
    const control = { type: "text", text: "long", cache_control: { type: "ephemeral" } };
    expect(body["system"]).toEqual([control]);
    expect(body["messages"]).toEqual([{ role: "user", content: [control, { type: "text", text: "short" }] }]);
    const converse = await send("bedrock", { messages: messages.slice(1) }, "amazon.nova-pro-v1:0");
    expect(converse.body["messages"]).toEqual([
      { role: "user", content: [{ text: "long" }, { cachePoint: { type: "default" } }, { text: "short" }] },
    ]);
  });

  test("images by URL and as data, PDFs; legacy functions", async () => {
    const content = [
      { type: "text", text: "see" },
      { type: "image_url", image_url: { url: "https://x.test/a.png" } },
      { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
    ];
    const { body } = await send("anthropic", { messages: [user(content)] }, model);
    expect((body["messages"] as { content: unknown }[])[0]?.content).toEqual([
      { type: "text", text: "see" },
      { type: "image", source: { type: "url", url: "https://x.test/a.png" } },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "a.pdf" },
    ]);
    const legacy = {
      functions: [{ name: "f", parameters: { type: "object" } }],
      function_call: { name: "f" },
      messages: [
        user("x"),
        { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
        { role: "function", name: "f", content: "42" },
      ],
    };
    const old = await send("anthropic", legacy, model);
    expect(old.body["tool_choice"]).toEqual({ type: "tool", name: "f" });
    expect(old.body["messages"]).toMatchObject([
      {},
      { content: [{ type: "tool_use", name: "f" }] },
      { content: [{ type: "tool_result", content: "42" }] },
    ]);
  });
});

describe("google", () => {
  const model = "gemini-2.5-flash";

  test("path and key, system apart, roles, results together, generation settings", async () => {
    const request = {
      messages: conversation,
      tools: [tool("a")],
      tool_choice: { type: "function", function: { name: "a" } },
      temperature: 1.5,
      top_p: 0.9,
      max_completion_tokens: 50,
      n: 2,
      stop: ["A", "B"],
      seed: 7,
      presence_penalty: 0.5,
      logprobs: true,
      top_logprobs: 3,
      reasoning_effort: "none",
      response_format: jsonSchema,
    };
    const { body, path, headers, outcome } = await send("google", request, model);
    expect(path).toBe("/v1beta/models/gemini-2.5-flash:generateContent");
    expect(headers["x-goog-api-key"]).toBe("sk-canary-0123456789abcdef");
    expect(body).toMatchObject({
      systemInstruction: { parts: [{ text: "one" }, { text: "two" }] },
      tools: [
        { functionDeclarations: [{ name: "a", description: "does a", parametersJsonSchema: { type: "object" } }] },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["a"] } },
      generationConfig: {
        temperature: 1.5,
        topP: 0.9,
        maxOutputTokens: 50,
        candidateCount: 2,
        stopSequences: ["A", "B"],
        seed: 7,
        presencePenalty: 0.5,
        responseLogprobs: true,
        logprobs: 3,
        responseMimeType: "application/json",
        responseJsonSchema: schema,
        thinkingConfig: { thinkingBudget: 0 },
      },
    });
    expect(body["contents"]).toEqual([
      { role: "user", parts: [{ text: "go" }] },
      {
        role: "model",
        parts: [
          { text: "let me see" },
          { functionCall: { id: "t1", name: "f_t1", args: { a: "t1" } } },
          { functionCall: { id: "t2", name: "f_t2", args: { a: "t2" } } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "t1", name: "f_t1", response: { result: "sunny" } } },
          { functionResponse: { id: "t2", name: "f_t2", response: { degrees: 20 } } },
          { text: "and?" },
        ],
      },
    ]);
    expect(outcome).toMatchObject({ notes: { responseFormat: "native" } });
  });

  test("a model with a colon or a path goes verbatim", async () => {
    const { path } = await send("google", { messages: [user("x")] }, "tunedModels/my:model.1");
    expect(path).toBe("/v1beta/tunedModels/my%3Amodel.1:generateContent");
  });

  test.each([
    ["in an id of ours", undefined],
    ["beside the wire's own id", "wire-id-1"],
  ])("a thought signature comes back to Gemini from id, type and function alone: %s", async (_name, id) => {
    const signature = "EqUCCqICAb4+9vsh8Pd5/ZVoPzSvjWW==";
    const answer = {
      candidates: [
        {
          content: {
            parts: [
              { functionCall: { ...(id ? { id } : {}), name: "f", args: { x: 1 } }, thoughtSignature: signature },
            ],
          },
          finishReason: "STOP",
        },
      ],
    };
    upstream.answer = (response) => void response.end(JSON.stringify(answer));
    const target = targetOf("google", upstream, "gemini-3-pro-preview");
    const first = await providers.google.chat(callOf({ messages: [user("x")] }), target, optionsOf());
    if (first.kind !== "completion") throw new Error(JSON.stringify(first));
    const call = JSON.parse(first.body.toString()).choices[0].message.tool_calls[0];
    if (id) expect(call.id).toBe(id);
    const kept = { id: call.id, type: call.type, function: call.function };
    const messages = [user("x"), { role: "assistant", content: null, tool_calls: [kept] }, result(call.id, "ok")];
    const { body } = await send("google", { messages }, "gemini-3-pro-preview");
    expect((body["contents"] as { parts: unknown[] }[])[1]?.parts).toEqual([
      { functionCall: { ...(id ? { id } : {}), name: "f", args: { x: 1 } }, thoughtSignature: signature },
    ]);
    // On the way to others the id is one that they take.
    for (const kind of ["anthropic", "bedrock", "openai"] as const) {
      await send(kind, { messages }, "claude-haiku-4-5");
      const sent = upstream.requests.at(-1)?.body ?? "";
      const ids = [...sent.matchAll(/"(?:id|tool_call_id|tool_use_id|toolUseId)":"([^"]+)"/g)].map((match) => match[1]);
      expect(new Set(ids).size).toBe(1);
      expect(ids[0]?.length).toBeLessThanOrEqual(40);
    }
  });

  test("a lost signature is replaced by Google's stand-in, on Gemini 3 only", async () => {
    const messages = [user("x"), called("a", "b"), result("a", "1"), result("b", "2")];
    const three = await send("google", { messages }, "gemini-3-flash");
    expect(JSON.stringify(three.body).match(/skip_thought_signature_validator/g)).toHaveLength(1);
    const two = await send("google", { messages }, model);
    expect(JSON.stringify(two.body)).not.toContain("thoughtSignature");
  });
});

describe("bedrock", () => {
  const model = "anthropic.claude-3-haiku-20240307-v1:0";

  test("path with the id encoded, a SigV4 signature that holds, turns alternating", async () => {
    const { body, path, headers } = await send(
      "bedrock",
      {
        messages: conversation,
        tools: [tool("a")],
        tool_choice: "required",
        max_tokens: 9,
        temperature: 0.5,
        stop: "X",
      },
      model,
    );
    expect(path).toBe("/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse");
    expect(headers["authorization"]).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/\d{8}\/us-east-1\/bedrock\/aws4_request/,
    );
    const again = new AwsV4Signer({
      method: "POST",
      url: upstream.url + path,
      headers: { "content-type": "application/json" },
      body: upstream.requests.at(-1)?.body ?? "",
      accessKeyId: "AKIAIOSFODNN7EXAMPLE",
      secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
      service: "bedrock",
      region: "us-east-1",
      datetime: headers["x-amz-date"] ?? "",
    });
    expect(headers["authorization"]).toBe(await again.authHeader());
    expect(body).toMatchObject({
      system: [{ text: "one" }, { text: "two" }],
      inferenceConfig: { maxTokens: 9, temperature: 0.5, stopSequences: ["X"] },
      toolConfig: {
        tools: [{ toolSpec: { name: "a", inputSchema: { json: { type: "object" } } } }],
        toolChoice: { any: {} },
      },
    });
    expect(body["messages"]).toMatchObject([
      { role: "user", content: [{ text: "go" }] },
      {
        role: "assistant",
        content: [{ text: "let me see" }, { toolUse: { toolUseId: "t1" } }, { toolUse: { toolUseId: "t2" } }],
      },
      {
        role: "user",
        content: [
          { toolResult: { toolUseId: "t1", content: [{ text: "sunny" }] } },
          { toolResult: { toolUseId: "t2" } },
          { text: "and?" },
        ],
      },
    ]);
  });

  test("a conversation that used tools names them though none are given; an API key goes as Bearer", async () => {
    const { body } = await send("bedrock", { messages: conversation }, model);
    expect(body["toolConfig"]).toMatchObject({
      tools: [{ toolSpec: { name: "f_t1" } }, { toolSpec: { name: "f_t2" } }],
    });
    const target = { ...targetOf("bedrock", upstream, model), credentials: { apiKey: "bedrock-api-key-1" } };
    await providers.bedrock.chat(callOf({ messages: [user("x")] }), target, optionsOf());
    expect(upstream.requests.at(-1)?.headers.authorization).toBe("Bearer bedrock-api-key-1");
  });

  test("a JSON schema is emulated by a forced tool whose input is the answer, whole and streamed", async () => {
    const sent = await send("bedrock", { messages: [user("x")], response_format: jsonSchema }, model);
    expect(sent.body["toolConfig"]).toMatchObject({ toolChoice: { tool: { name: "json_answer" } } });
    upstream.answer = (response) =>
      void response.end(
        JSON.stringify({
          output: {
            message: {
              content: [{ text: "Sure!" }, { toolUse: { toolUseId: "1", name: "json_answer", input: { n: 3 } } }],
            },
          },
          stopReason: "tool_use",
          usage: { inputTokens: 1, outputTokens: 2 },
        }),
      );
    const outcome = await providers.bedrock.chat(
      callOf({ messages: [user("x")], response_format: jsonSchema }),
      targetOf("bedrock", upstream, model),
      optionsOf(),
    );
    if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
    expect(JSON.parse(outcome.body.toString()).choices[0]).toMatchObject({
      message: { content: '{"n":3}' },
      finish_reason: "stop",
    });
  });
});

describe("images by URL for wires that take bytes", () => {
  async function withImages(
    serve: (path: string) => { status?: number; headers?: object; body: Buffer },
    run: (url: string) => Promise<void>,
  ) {
    const server = createServer((request, response) => {
      const { status = 200, headers = {}, body } = serve(request.url ?? "");
      expect(request.headers.authorization).toBeUndefined();
      response.writeHead(status, { ...headers }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }
  const ask = (kind: "google" | "bedrock", url: string) =>
    send(
      kind,
      { messages: [user([{ type: "image_url", image_url: { url } }])] },
      kind === "google" ? "gemini-2.5-pro" : "amazon.nova-pro-v1:0",
    );

  test("are fetched and put in, over redirects too", async () => {
    const png = Buffer.from(PIXEL, "base64");
    await withImages(
      (path) => (path === "/a" ? { status: 302, headers: { location: "/b" }, body: Buffer.alloc(0) } : { body: png }),
      async (origin) => {
        const gemini = await ask("google", `${origin}/a`);
        expect(JSON.stringify(gemini.body)).toContain(`{"inlineData":{"mimeType":"image/png","data":"${PIXEL}"}}`);
        const converse = await ask("bedrock", `${origin}/b`);
        expect(JSON.stringify(converse.body)).toContain(`{"image":{"format":"png","source":{"bytes":"${PIXEL}"}}}`);
      },
    );
  });

  test.each([
    ["a web page", { body: Buffer.from("<html>") }],
    ["404", { status: 404, body: Buffer.from("") }],
    ["21 MB", { body: Buffer.concat([Buffer.from(PIXEL, "base64"), Buffer.alloc(21 << 20)]) }],
    ["a redirect without end", { status: 302, headers: { location: "/again" }, body: Buffer.alloc(0) }],
    ["a redirect to a file", { status: 302, headers: { location: "file:///etc/passwd" }, body: Buffer.alloc(0) }],
  ])("%s is a 400 and nothing is sent to the provider", async (_name, answer) => {
    await withImages(
      () => answer,
      async (origin) => {
        const { outcome } = await ask("bedrock", `${origin}/x`);
        expect(outcome).toMatchObject({ kind: "failure", failure: { status: 400, type: "invalid_request_error" } });
        expect(upstream.requests).toHaveLength(0);
      },
    );
  });
});

describe("what a provider lacks", () => {
  const cases: readonly [Ecosystem, string, string, object][] = [
    ["anthropic", "claude-haiku-4-5", "n", { n: 2 }],
    ["anthropic", "claude-haiku-4-5", "seed", { seed: 1 }],
    ["anthropic", "claude-haiku-4-5", "logprobs", { logprobs: true, top_logprobs: 2 }],
    ["anthropic", "claude-haiku-4-5", "temperature", { temperature: 1.5 }],
    ["anthropic", "claude-opus-4-8", "temperature", { temperature: 0.2 }],
    ["anthropic", "claude-haiku-4-5", "frequency_penalty", { frequency_penalty: 1 }],
    ["anthropic", "claude-haiku-4-5", "some_new_thing", { some_new_thing: 1 }],
    ["google", "gemini-2.5-pro", "logit_bias", { logit_bias: { "1": 2 } }],
    ["google", "gemini-2.0-flash", "reasoning_effort", { reasoning_effort: "high" }],
    ["bedrock", "meta.llama3", "presence_penalty", { presence_penalty: 1 }],
    ["bedrock", "meta.llama3", "reasoning_effort", { reasoning_effort: "high" }],
    ["bedrock", "meta.llama3", "parallel_tool_calls", { parallel_tool_calls: false, tools: [tool("a")] }],
  ];

  test.each(cases)("%s %s refuses %s by name, or drops it and says so", async (kind, model, param, fields) => {
    const request = { messages: [user("x")], ...fields };
    const refused = await send(kind, request, model);
    expect(refused.outcome).toMatchObject({
      kind: "failure",
      failure: { status: 400, param, code: "unsupported_parameter" },
    });
    expect(JSON.stringify(refused.outcome)).toContain(kind);
    expect(upstream.requests).toHaveLength(0);
    const dropped = await send(kind, request, model, { dropUnsupported: true });
    expect(dropped.outcome).toMatchObject({ kind: "completion", notes: { dropped: expect.arrayContaining([param]) } });
  });

  test("audio is refused even then", async () => {
    const request = { messages: [user([{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }])] };
    for (const kind of ["anthropic", "google", "bedrock"] as const) {
      const { outcome } = await send(kind, request, "m", { dropUnsupported: true });
      expect(outcome).toMatchObject({
        kind: "failure",
        failure: { status: 400, param: "messages[0].content[0].input_audio" },
      });
    }
  });

  test("neutral values ask for nothing", async () => {
    const neutral = {
      n: 1,
      logprobs: false,
      logit_bias: {},
      presence_penalty: 0,
      seed: null,
      store: false,
      temperature: 1,
      top_p: 1,
      user: "u",
      metadata: { a: "b" },
      service_tier: "auto",
      modalities: ["text"],
      parallel_tool_calls: true,
    };
    for (const kind of ["anthropic", "google", "bedrock"] as const) {
      const { outcome } = await send(kind, { messages: [user("x")], ...neutral }, "claude-opus-4-8");
      expect(outcome.kind).toBe("completion");
    }
  });
});
