// What translated providers cannot do as it was asked: images by URL are fetched, parameters that they lack are refused or dropped.
import { createServer } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { listen } from "#test/listen.ts";
import type { Ecosystem } from "./good-answers.ts";
import { testGateway } from "./pipeline.ts";
import { PIXEL, playUpstream, providers, send, tool, upstream, user } from "./sent.ts";
import { callOf, optionsOf } from "./upstream.ts";

playUpstream();

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
    const { origin, close } = await listen(server);
    onTestFinished(close);
    await run(origin);
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

  test("Anthropic, which takes no http, gets them likewise", async () => {
    await withImages(
      () => ({ body: Buffer.from(PIXEL, "base64") }),
      async (origin) => {
        const content = [{ type: "image_url", image_url: { url: `${origin}/a` } }];
        const { body } = await send("anthropic", { messages: [user(content)] }, "claude-haiku-4-5");
        const source = { type: "base64", media_type: "image/png", data: PIXEL };
        expect(body["messages"]).toEqual([{ role: "user", content: [{ type: "image", source }] }]);
      },
    );
  });

  test("an image's bytes say what it is, whatever its data URL says", async () => {
    for (const kind of ["anthropic", "google", "bedrock"] as const) {
      const content = [{ type: "image_url", image_url: { url: `data:image/jpg;base64,${PIXEL}` } }];
      const { body } = await send(kind, { messages: [user(content)] }, "claude-haiku-4-5");
      expect(JSON.stringify(body)).toMatch(/"(media_type|mimeType)":"image\/png"|"format":"png"/);
    }
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

  test.each([
    ["anthropic", "gs://bucket/x.png", "its URL is not http or https"],
    ["bedrock", "gs://bucket/x.png", "its URL is not http or https"],
    ["google", "http://a:b@example.com/x.png", "its URL holds credentials"],
  ] as const)("%s: the one of several that is not to be had is named: %s", async (kind, url, why) => {
    const image = (url: string) => ({ type: "image_url", image_url: { url } });
    const content = [{ type: "text", text: "x" }, image(`data:image/png;base64,${PIXEL}`), image(url)];
    const { outcome } = await send(kind, { messages: [user("hi"), user(content)] }, "m");
    const param = "messages[1].content[2].image_url.url";
    expect(outcome).toMatchObject({ failure: { status: 400, param, message: `An image cannot be fetched: ${why}.` } });
    expect(upstream.requests).toHaveLength(0);
  });

  test("are fetched a few at a time, and together no more than a body may hold", async () => {
    let open = 0;
    let most = 0;
    const png = Buffer.from(PIXEL, "base64");
    const large = Buffer.concat([png, Buffer.alloc(17 << 20)]);
    const server = createServer(async (request, response) => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setTimeout(resolve, 200));
      open--;
      if (request.url === "/none") request.destroy();
      response.end(request.url === "/large" ? large : png);
    });
    const { origin, close } = await listen(server);
    onTestFinished(close);
    const many = (path: string, count: number) =>
      Array.from({ length: count }, () => ({ type: "image_url", image_url: { url: `${origin}${path}` } }));
    const fetched = await send("bedrock", { messages: [user(many("/small", 20))] }, "amazon.nova-pro-v1:0");
    expect(fetched.outcome.kind).toBe("completion");
    expect(most).toBe(8);
    const refused = await send("google", { messages: [user(many("/large", 4))] }, "gemini-2.5-pro");
    expect(refused.outcome).toMatchObject({ kind: "failure", failure: { status: 400, code: "invalid_image_url" } });
    const lost = await send("google", { messages: [user(many("/none", 1))] }, "gemini-2.5-pro");
    const message = expect.stringMatching(
      /^An image cannot be fetched: its server broke the connection off \(\w+\)\.$/,
    );
    expect(lost.outcome).toMatchObject({ failure: { status: 400, message } });
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
    ["anthropic", "claude-haiku-4-5", "stop", { stop: ["END", "\n"] }],
    ["anthropic", "claude-haiku-4-5", "top_p", { top_p: 0.5, reasoning_effort: "low" }],
    ["anthropic", "claude-sonnet-4-6", "temperature", { temperature: 0.5, reasoning_effort: "low" }],
    ["anthropic", "claude-opus-5-5", "tool_choice", { tool_choice: "required", tools: [tool("a")] }],
    ["google", "gemini-3.8-flash", "n", { n: 2 }],
    ["google", "gemini-3.8-flash", "presence_penalty", { presence_penalty: 0.5 }],
    ["google", "gemini-2.5-pro", "seed", { seed: 2 ** 40 }],
    ["google", "gemini-2.5-pro", "logit_bias", { logit_bias: { "1": 2 } }],
    ["google", "gemini-2.5-flash-image", "reasoning_effort", { reasoning_effort: "high" }],
    ["google", "gemini-2.0-flash", "reasoning_effort", { reasoning_effort: "high" }],
    ["bedrock", "us.amazon.nova-2-lite-v1:0", "reasoning_effort", { reasoning_effort: "high", max_tokens: 9 }],
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

  test("of a demand for one of some tools the tools stay", async () => {
    const allowed_tools = { mode: "required", tools: [{ type: "function", function: { name: "b" } }] };
    const tool_choice = { type: "allowed_tools", allowed_tools };
    const request = { messages: [user("x")], tools: [tool("a"), tool("b")], tool_choice };
    for (const [kind, model] of [
      ["anthropic", "claude-opus-5-5"],
      ["bedrock", "meta.llama3"],
    ] as const) {
      const { body, outcome } = await send(kind, request, model, { dropUnsupported: true });
      expect(JSON.stringify(body)).toContain('"name":"b"');
      expect(JSON.stringify(body)).not.toContain('"name":"a"');
      expect(JSON.stringify(body)).toMatch(/"auto"/);
      expect(outcome).toMatchObject({ notes: { dropped: ["tool_choice"] } });
    }
  });

  test("the sandbox says what it left out, and refuses what nothing can leave out", async () => {
    const target = { provider: "sandbox", kind: "sandbox", model: "echo", baseUrl: null, credentials: {} } as const;
    const ask = (fields: object) =>
      providers.sandbox.chat(callOf({ messages: [user("x")], ...fields }), target, optionsOf());
    const lacking = { web_search_options: {}, drop_unsupported: true };
    expect(await ask(lacking)).toMatchObject({ kind: "completion", notes: { dropped: ["web_search_options"] } });
    expect(await ask({ ...lacking, modalities: ["audio"] })).toMatchObject({ failure: { param: "modalities" } });
  });

  test("a call that failed says so too", async () => {
    upstream.answer = (response) => void response.writeHead(500).end();
    const { chat } = await testGateway({
      providers: { anthropic: { api_key: "k", base_url: upstream.url } },
      drop_unsupported: true,
      allow_unpriced: true,
    });
    const { status, headers } = await chat({ model: "anthropic/claude-haiku-4-5", seed: 1, metadata: { a: "b" } });
    expect([status, headers["x-magic-dropped"]]).toEqual([502, "seed, metadata"]);
    const kept = chat({ model: "anthropic/claude-haiku-4-5", seed: 1, drop_unsupported: false });
    await expect(kept).rejects.toThrow("it has no seed (drop_unsupported leaves it out)");
    // Of thousands as many as a client takes in its headers.
    const unknown = Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`unknown_${at}`, 1]));
    const many = await chat({ model: "anthropic/claude-haiku-4-5", ...unknown });
    expect(String(many.headers["x-magic-dropped"])).toMatch(/^unknown_0, unknown_1, .{1900,1990} and 28\d\d more$/);
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

  test.each([
    ["messages[1].audio", [user("x"), { role: "assistant", audio: { id: "audio_1" } }]],
    [
      "messages[1].tool_calls[0]",
      [user("x"), { role: "assistant", tool_calls: [{ id: "c", type: "custom", custom: { name: "f", input: "" } }] }],
    ],
    ["messages", [user(" "), user([{ type: "text", text: "" }])]],
    ["messages[1]", [user("x"), { role: "assistant", content: "{" }, { role: "system", content: "go on" }]],
  ])("what cannot be told is refused: %s", async (param, messages) => {
    for (const kind of ["anthropic", "bedrock"] as const) {
      const { outcome } = await send(kind, { messages }, "claude-opus-4-8", { dropUnsupported: true });
      expect(outcome).toMatchObject({ kind: "failure", failure: { status: 400, param } });
    }
    expect(upstream.requests).toHaveLength(0);
  });

  test.each([
    ["gemini-2.5-pro", true],
    ["gemini-3-pro-preview", true],
    ["gemini-3.1-pro-preview", true],
    ["gemini-3.5-flash", true],
    ["gemini-3.5-flash-lite", false],
    ["gemini-3.6-flash", false],
    ["gemini-4-pro", false],
  ])("%s goes on with an answer that is begun for it: %s", async (name, goesOn) => {
    const messages = [user("x"), { role: "assistant", content: "{" }];
    const { outcome } = await send("google", { messages }, name);
    expect(outcome).toMatchObject(goesOn ? { kind: "completion" } : { failure: { param: "messages[1]" } });
  });

  test("what changes nothing of the answer is left out and named, beside what a provider left out by itself", async () => {
    const hints = { metadata: { a: "b" }, prompt_cache_key: "k", safety_identifier: "s" };
    const google = await send("google", { messages: [user("x")], ...hints }, "gemini-2.5-pro");
    expect(google.outcome).toMatchObject({
      notes: { dropped: ["metadata", "safety_identifier", "prompt_cache_key"] },
    });
    const anthropic = await send("anthropic", { messages: [user("x")], ...hints }, "claude-haiku-4-5");
    expect(anthropic.body["metadata"]).toEqual({ user_id: "s" });
    expect(anthropic.outcome).toMatchObject({ notes: { dropped: ["metadata", "prompt_cache_key"] } });
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}`, detail: "original" } };
    const named = await send("google", { messages: [{ ...user([image]), name: "ann" }] }, "gemini-2.5-pro");
    expect(named.outcome).toMatchObject({
      notes: { dropped: ["messages.name", "messages.content.image_url.detail"] },
    });
    const persona = await send(
      "google",
      { messages: [{ role: "system", content: "y", name: "rules" }, user("x")] },
      "gemini-2.5-pro",
    );
    expect(persona.outcome).toMatchObject({ notes: { dropped: ["messages.name"] } });
    const past = [
      { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
      { role: "function", name: "f", content: "1" },
    ];
    const legacy = await send("google", { messages: past }, "gemini-2.5-pro");
    expect(legacy.outcome).toMatchObject({ notes: { dropped: [] } });
  });

  test.each([
    ["anthropic", "claude-haiku-4-5"],
    ["anthropic", "claude-3-5-haiku-latest"],
    ["google", "gemini-3-flash"],
    ["bedrock", "us.anthropic.claude-sonnet-4-6"],
    ["bedrock", "amazon.nova-pro-v1:0"],
    ["bedrock", "us.meta.llama3-3-70b-instruct-v1:0"],
  ] as const)("%s %s is told what the answer's format is for", async (kind, model) => {
    const properties = { city: { type: "string" } };
    const schema = { type: "object", properties, required: ["city"], additionalProperties: false };
    const json_schema = { name: "place", description: "Where the parcel lies.", schema };
    const { body } = await send(
      kind,
      { messages: [user("x")], response_format: { type: "json_schema", json_schema } },
      model,
    );
    expect(JSON.stringify(body)).toContain("Where the parcel lies.");
  });

  test.each([null, "Where the parcel lies."])(
    "a JSON schema of null is any object's: described as %j",
    async (description) => {
      const response_format = { type: "json_schema", json_schema: { name: "place", description, schema: null } };
      for (const [kind, model] of [
        ["anthropic", "claude-3-5-haiku-latest"],
        ["bedrock", "amazon.nova-pro-v1:0"],
      ] as const) {
        const { body } = await send(kind, { messages: [user("x")], response_format }, model);
        expect(JSON.stringify(body)).toContain("Give the final answer by calling this tool.");
        if (description) expect(JSON.stringify(body)).toContain(description);
      }
    },
  );

  test.each([
    ["google", "gemini-3-pro-preview", "none", ["reasoning_effort"]],
    ["google", "gemini-2.5-pro", "none", ["reasoning_effort"]],
    ["google", "gemini-3.7-flash", "none", ["reasoning_effort"]],
    ["google", "gemini-3.7-flash", "low", []],
    ["google", "gemini-4-argon", "none", ["reasoning_effort"]],
    ["google", "gemini-3.5-flash-lite", "none", []],
    ["google", "gemini-2.5-flash", "none", []],
    ["anthropic", "claude-opus-5-5", "none", ["reasoning_effort"]],
    ["anthropic", "claude-opus-5", "none", []],
    ["bedrock", "us.anthropic.claude-opus-5-5", "none", ["reasoning_effort"]],
    ["bedrock", "openai.gpt-oss-120b-1:0", "none", ["reasoning_effort"]],
    ["bedrock", "openai.gpt-oss-120b-1:0", "xhigh", []],
  ] as const)(
    "%s: %s, asked for an effort of %s, names what it cannot do: %j",
    async (kind, model, effort, dropped) => {
      const { outcome } = await send(kind, { messages: [user("x")], reasoning_effort: effort }, model);
      expect(outcome).toMatchObject({ kind: "completion", notes: { dropped } });
    },
  );

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
