// What leaves for Anthropic, case by case of its documentation, as a real server receives it.
import { describe, expect, test } from "vitest";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import { anthropicRequest } from "#daemon/gateway/providers/anthropic/request.ts";
import { called, conversation, jsonSchema, PIXEL, playUpstream, result, schema, send, tool, user } from "./sent.ts";
import { targetOf } from "./upstream.ts";

playUpstream();

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

  test("what the system says later stays in its place for models that hear it there, after the user's turn", async () => {
    const said = (role: string, text: string) => ({ role, content: [{ type: "text", text }] });
    const messages = [
      { role: "system", content: "one" },
      user("a"),
      { role: "assistant", content: "b" },
      { role: "developer", content: "two" },
      { role: "system", content: "three" },
      user("c"),
      { role: "assistant", content: "d" },
      user("e"),
      { role: "system", content: "four" },
    ];
    const { body } = await send("anthropic", { messages }, "claude-opus-4-8");
    expect(body["system"]).toEqual([{ type: "text", text: "one" }]);
    expect(body["messages"]).toEqual([
      said("user", "a"),
      said("assistant", "b"),
      said("user", "c"),
      { role: "system", content: [...said("", "two").content, ...said("", "three").content] },
      said("assistant", "d"),
      said("user", "e"),
      said("system", "four"),
    ]);
    const older = await send("anthropic", { messages }, model);
    expect(older.body["system"]).toMatchObject([{ text: "one" }, { text: "two" }, { text: "three" }, { text: "four" }]);
  });

  test("at Microsoft Foundry, which has no place for it, it goes to the top", () => {
    const request = { messages: [user("a"), { role: "system", content: "later" }] } as unknown as ChatRequest;
    const foundry = { url: "https://res.services.ai.azure.com/anthropic" };
    const { body } = anthropicRequest(request, targetOf("anthropic", foundry, "claude-opus-4-8"), { of: () => [] });
    expect(body).toMatchObject({ system: [{ text: "later" }], messages: [{ role: "user" }] });
  });

  test("what the system says later has no place between two answers", async () => {
    const messages = [user("a"), { role: "assistant", content: "b" }, { role: "system", content: "one" }, called("t1")];
    const more = [...messages, result("t1", "sunny")];
    const { body } = await send("anthropic", { messages: more }, "claude-opus-4-8");
    expect(body["system"]).toEqual([{ type: "text", text: "one" }]);
    expect(body["messages"]).toMatchObject([{ role: "user" }, { role: "assistant" }, { role: "user" }]);
  });

  test("blank texts are left out, of a system prompt too", async () => {
    const messages = [
      { role: "system", content: " " },
      user([
        { type: "text", text: "\n" },
        { type: "text", text: "x" },
      ]),
      { role: "assistant", content: "\t" },
    ];
    const { body } = await send("anthropic", { messages }, model);
    expect(body["system"]).toBeUndefined();
    expect(body["messages"]).toEqual([{ role: "user", content: [{ type: "text", text: "x" }] }]);
  });

  test.each([
    ["claude-opus-4-8", 64_000],
    ["claude-haiku-4-5", 32_000],
    ["claude-opus-4-1", 8_192],
    ["claude-3-5-haiku-latest", 8_192],
    ["claude-3-haiku-20240307", 4_096],
    ["mine", 8_192],
  ])("%s may answer with %i tokens where nobody says how many", async (name, tokens) => {
    expect((await send("anthropic", { messages: [user("x")] }, name)).body["max_tokens"]).toBe(tokens);
  });

  test.each([
    ["claude-haiku-4-5", { temperature: 0.2, top_p: 1 }, { temperature: 0.2 }],
    ["claude-haiku-4-5", { temperature: 1, top_p: 0.5 }, { top_p: 0.5 }],
    ["claude-haiku-4-5", { temperature: 1 }, { temperature: 1 }],
    ["claude-haiku-4-5", { temperature: 0.2, top_p: 0.5 }, { temperature: 0.2, top_p: 0.5 }],
    ["claude-haiku-4-5", { temperature: 0.2, top_p: 0.5, drop_unsupported: true }, { temperature: 0.2 }],
    ["claude-haiku-4-5", { temperature: 0.2, top_p: 0.5, reasoning_effort: "low", drop_unsupported: true }, {}],
    ["claude-3-5-haiku-latest", { temperature: 1, top_p: 1 }, { temperature: 1, top_p: 1 }],
    ["claude-opus-4-8", { temperature: 1, top_p: 1 }, {}],
  ])("a neutral value is not sent where the model takes one of the two, or none: %s %j", async (name, asked, sent) => {
    const { body } = await send("anthropic", { messages: [user("x")], ...asked }, name);
    const { temperature, top_p } = body;
    expect(JSON.parse(JSON.stringify({ temperature, top_p }))).toEqual(sent);
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
    for (const allowed of [
      { type: "function", function: { name: "c" } },
      { type: "function", name: "b" },
      { type: "custom", custom: { name: "b" } },
    ]) {
      const choice = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [allowed] } };
      const { outcome } = await send("anthropic", { ...request, tool_choice: choice }, model);
      expect(outcome).toMatchObject({ failure: { status: 400, param: "tool_choice" } });
    }
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
    expect(emulated.body["tool_choice"]).toMatchObject({ type: "tool", name: "json" });
    expect(emulated.outcome).toMatchObject({ notes: { responseFormat: "emulated" } });
  });

  test("the tool that stands for the answer neither satisfies a tool_choice nor opens the tools that it closes", async () => {
    const request = { messages: [user("x")], response_format: jsonSchema, tools: [tool("a"), tool("b")] };
    const asked = async (choice: unknown) => {
      const { body } = await send("anthropic", { ...request, tool_choice: choice }, "claude-3-5-haiku-latest");
      return { choice: body["tool_choice"], tools: (body["tools"] as { name: string }[]).map(({ name }) => name) };
    };
    expect(await asked("auto")).toEqual({ choice: { type: "any" }, tools: ["a", "b", "json"] });
    expect(await asked("none")).toMatchObject({ choice: { type: "tool", name: "json" } });
    expect(await asked("required")).toEqual({ choice: { type: "any" }, tools: ["a", "b"] });
    const named = { type: "function", function: { name: "b" } };
    expect(await asked(named)).toEqual({ choice: { type: "tool", name: "b" }, tools: ["a", "b"] });
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
      expect(emulated.body["tool_choice"]).toMatchObject({ name: "json" });
    }
  });

  test("reasoning effort: a budget on top of max_tokens, an effort for newer models", async () => {
    const budget = await send("anthropic", { messages: [user("x")], reasoning_effort: "low", max_tokens: 100 }, model);
    expect(budget.body).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2048 }, max_tokens: 2148 });
    const effort = await send("anthropic", { messages: [user("x")], reasoning_effort: "high" }, "claude-opus-4-6");
    expect(effort.body).toMatchObject({ thinking: { type: "adaptive" }, output_config: { effort: "high" } });
  });

  test.each([
    ["claude-sonnet-5", "disabled"],
    ["claude-haiku-5-5", "disabled"],
    ["claude-sonnet-5-5", "between_tools"],
    ["claude-opus-5-5", null],
  ])("an effort of none is thinking's own word for it where the model has one: %s", async (name, type) => {
    const thought = { type: "reasoning.text", text: "hm", signature: "s", format: "anthropic-claude-v1", index: 0 };
    const messages = [user("x"), { ...called("t1"), reasoning_details: [thought] }, result("t1", "ok")];
    for (const kind of ["anthropic", "bedrock"] as const) {
      const { body, outcome } = await send(kind, { messages, reasoning_effort: "none" }, `anthropic.${name}`);
      const fields = kind === "anthropic" ? body : (body["additionalModelRequestFields"] as Record<string, unknown>);
      if (type) expect(fields["thinking"]).toEqual({ type });
      else expect(fields["output_config"]).toEqual({ effort: "low" });
      expect(outcome).toMatchObject({ notes: { dropped: type ? [] : ["reasoning_effort"] } });
      expect(JSON.stringify(body["messages"]).includes("hm")).toBe(type === null);
    }
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

  test.each([
    ["u-1", "u-1"],
    ["bob@example.com", expect.stringMatching(/^[0-9a-f]{64}$/)],
    ["+49 171 1234567", expect.stringMatching(/^[0-9a-f]{64}$/)],
    ["x".repeat(300), expect.stringMatching(/^[0-9a-f]{64}$/)],
  ])("a user %s, of whom the service must not know who it is, goes as a hash", async (name, sent) => {
    const { body } = await send("anthropic", { messages: [user("x")], user: "another" }, model, { user: name });
    expect(body["metadata"]).toEqual({ user_id: sent });
  });

  test("thinking on a budget does not begin in the middle of an answer", async () => {
    const messages = [user("x"), { role: "assistant", content: "{" }];
    const { body, outcome } = await send("anthropic", { messages, reasoning_effort: "low" }, model);
    expect(body["thinking"]).toBeUndefined();
    expect(outcome).toMatchObject({ notes: { dropped: ["reasoning_effort"] } });
  });

  test("calls of one id, as some servers give them in each turn, are told apart with their results", async () => {
    const turn = (said: string) => [called("t"), result("t", said)];
    const twice = [{ ...called("t"), tool_calls: [...called("t").tool_calls, ...called("t").tool_calls] }];
    const messages = [user("x"), ...turn("1"), ...turn("2"), ...twice, result("t", "3"), result("t", "4")];
    const expected = ["t", "t", "t-2", "t-2", "t-3", "t-4", "t-3", "t-4"];
    for (const kind of ["anthropic", "bedrock"] as const) {
      const { body } = await send(kind, { messages }, "anthropic.claude-haiku-4-5");
      const ids = JSON.stringify(body["messages"]).matchAll(/"(?:toolUseId|tool_use_id|id)":"([^"]+)"/g);
      expect([...ids].map(([, id]) => id)).toEqual(expected);
    }
  });

  test("an earlier call of what nobody offered goes on under a name that the wire takes", async () => {
    const names = ["browser.tabs.open", "$READ", "", "fine-1_x"];
    const tool_calls = names.map((name, at) => ({
      id: `t${at}`,
      type: "function",
      function: { name, arguments: "{}" },
    }));
    const messages = [user("x"), { role: "assistant", tool_calls }, ...names.map((_, at) => result(`t${at}`, "no"))];
    for (const [kind, named] of [
      ["anthropic", "claude-haiku-4-5"],
      ["bedrock", "anthropic.claude-haiku-4-5"],
      ["google", "gemini-2.5-flash"],
    ] as const) {
      const { body } = await send(kind, { messages }, named);
      const sent = [...JSON.stringify(body).matchAll(/"(?:tool_use|toolUse|functionCall)":?.*?"name":"([^"]*)"/g)];
      const fitting = ["browser_tabs_open", "_READ", "_", "fine-1_x"];
      expect(
        sent.map(([, name]) => name),
        kind,
      ).toEqual(kind === "google" ? [names[0], ...fitting.slice(1)] : fitting);
    }
  });

  test("cache_control, as others' users write it, is heard on parts, messages, results and tools", async () => {
    const hour = { cache_control: { type: "ephemeral", ttl: "1h" } };
    const mark = { cache_control: { type: "ephemeral" } };
    const request = {
      messages: [
        { role: "system", content: "long", ...hour },
        user([{ type: "text", text: "x", ...mark }]),
        called("t1"),
        { ...result("t1", "ok"), ...mark },
      ],
      tools: [{ ...tool("f_t1"), ...mark }],
    };
    const { body } = await send("anthropic", request, model);
    expect(body).toMatchObject({
      system: [{ text: "long", ...hour }],
      messages: [{ content: [{ text: "x", ...mark }] }, {}, { content: [{ type: "tool_result", ...mark }] }],
      tools: [{ name: "f_t1", ...mark }],
    });
    const point = { cachePoint: { type: "default" } };
    const claude = await send("bedrock", request, "us.anthropic.claude-sonnet-4-5-20250929-v1:0");
    expect(claude.body).toMatchObject({
      system: [{ text: "long" }, { cachePoint: { type: "default", ttl: "1h" } }],
      messages: [{ content: [{ text: "x" }, point] }, {}, { content: [{ toolResult: {} }, point] }],
      toolConfig: { tools: [{ toolSpec: {} }, point] },
    });
    const older = await send("bedrock", request, "anthropic.claude-3-7-sonnet-20250219-v1:0");
    expect(older.body["system"]).toEqual([{ text: "long" }, point]);
    const llama = await send("bedrock", request, "us.meta.llama3-3-70b-instruct-v1:0");
    expect(JSON.stringify(llama.body)).not.toContain("cachePoint");
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

  test.each([
    [model, "low", 64_000, { max_tokens: 64_000, budget: 1024 }],
    [model, "high", 60_000, { max_tokens: 64_000, budget: 4000 }],
    ["claude-opus-4-1", "xhigh", undefined, { max_tokens: 32_000, budget: 23_808 }],
  ])("thinking leaves room in the model's longest answer: %s %s %s", async (name, effort, asked, sent) => {
    const request = { messages: [user("x")], reasoning_effort: effort, max_tokens: asked };
    const { body } = await send("anthropic", request, name);
    expect(body).toMatchObject({ max_tokens: sent.max_tokens, thinking: { budget_tokens: sent.budget } });
    if (asked === undefined) return;
    const converse = await send("bedrock", request, `anthropic.${name}`);
    expect(converse.body).toMatchObject({
      inferenceConfig: { maxTokens: sent.max_tokens },
      additionalModelRequestFields: { thinking: { budget_tokens: sent.budget } },
    });
  });

  test("a strict tool is one where the service can keep its schema", async () => {
    const strict = (name: string, a: object) => ({
      type: "function",
      function: { name, strict: true, parameters: { type: "object", properties: { a }, required: ["a"] } },
    });
    const tools = [
      strict("limited", { type: ["integer", "null"], minimum: 1 }),
      strict("open", { type: "object", additionalProperties: { type: "string" } }),
    ];
    const { body, outcome } = await send("anthropic", { messages: [user("x")], tools }, model);
    expect(outcome).toMatchObject({ notes: { dropped: ["tools.function.strict"] } });
    expect(body["tools"]).toMatchObject([
      {
        strict: true,
        input_schema: {
          properties: { a: { type: ["integer", "null"], description: "(minimum: 1)" } },
          additionalProperties: false,
        },
      },
      { name: "open", input_schema: tools[1]?.function.parameters },
    ]);
    expect((body["tools"] as object[])[1]).not.toHaveProperty("strict");
  });

  test("formats and patterns that the service does not know are told; what cannot be told, or is too much, is emulated", async () => {
    const ask = async (properties: object) => {
      const schema = { type: "object", properties, required: Object.keys(properties) };
      const format = { type: "json_schema", json_schema: { name: "answer", schema } };
      return (await send("anthropic", { messages: [user("x")], response_format: format }, model)).body;
    };
    const told = await ask({
      a: { type: "string", format: "byte" },
      b: { type: "string", format: "date", pattern: "^(?=x)" },
      c: { oneOf: [{ type: "string" }, { type: ["object", "null"], properties: { d: {} }, required: ["d"] }] },
    });
    expect(told["output_config"]).toMatchObject({
      format: {
        schema: {
          properties: {
            a: { type: "string", description: '(format: "byte")' },
            b: { type: "string", format: "date", description: '(pattern: "^(?=x)")' },
            c: { anyOf: [{ type: "string" }, { additionalProperties: false }] },
          },
        },
      },
    });
    const unions = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`p${n}`, { type: ["string", "null"] }]));
    for (const properties of [{ a: { not: { type: "string" } } }, unions]) {
      expect((await ask(properties))["tool_choice"]).toMatchObject({ name: "json" });
    }
  });

  test("of tools with one name the first is told, on every wire that refuses a second", async () => {
    const tools = [tool("a"), tool("b"), tool("a")];
    for (const kind of ["anthropic", "bedrock", "google"] as const) {
      const { body } = await send(
        kind,
        { messages: [user("x")], tools },
        kind === "google" ? "gemini-2.5-flash" : model,
      );
      const names = [...JSON.stringify(body).matchAll(/"name":"(\w)"/g)].map(([, name]) => name);
      expect(names, kind).toEqual(["a", "b"]);
    }
  });

  test("of many marks for the cache the last four are sent, as many as Claude takes, at Bedrock as well", async () => {
    const cache_control = { type: "ephemeral" };
    const tools = ["a", "b", "c"].map((name) => ({ ...tool(name), cache_control }));
    const messages = [
      { role: "system", content: [{ type: "text", text: "be brief", cache_control }] },
      ...["x", "y"].map((text) => user([{ type: "text", text, cache_control }])),
    ];
    const sent = await send("anthropic", { messages, tools }, model);
    const marked = (block: unknown) => JSON.stringify(block).split('"cache_control"').length - 1;
    const { tools: told, system, messages: turns } = sent.body;
    expect([...(told as object[]).map(marked), marked(system), marked(turns)]).toEqual([0, 0, 1, 1, 2]);
    const { body } = await send("bedrock", { messages, tools }, "us.anthropic.claude-haiku-4-5-20251001-v1:0");
    const order = [...JSON.stringify(body["toolConfig"]).matchAll(/"toolSpec"|"cachePoint"/g)].map(([key]) => key);
    expect(order.join()).toBe('"toolSpec","toolSpec","toolSpec","cachePoint"');
    expect(JSON.stringify(body).split('"cachePoint"')).toHaveLength(5);
  });

  test("of many strict tools twenty are sent so, as many as Claude takes", async () => {
    const parameters = { ...schema, additionalProperties: false };
    const tools = Array.from({ length: 22 }, (_, at) => ({
      type: "function",
      function: { name: `f${at}`, strict: true, parameters },
    }));
    const { body, outcome } = await send("anthropic", { messages: [user("x")], tools }, model);
    expect((body["tools"] as { strict?: true }[]).filter(({ strict }) => strict)).toHaveLength(20);
    expect(outcome).toMatchObject({ notes: { dropped: ["tools.function.strict"] } });
  });

  test("schemas of older drafts, and keywords that say nothing, are said in today's draft, by which they are judged", async () => {
    const properties = {
      pair: { type: "array", items: [{ type: "string", enum: null }, true], additionalItems: false },
      more: { type: "integer", minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
      marked: { type: "string", required: true, default: null, description: null },
      odd: { type: ["string", "any", "string"], anyOf: [{ type: "float" }, { properties: [] }] },
      required: { const: null },
    };
    const parameters = { type: "object", properties, required: ["pair", "pair"], additionalProperties: "string" };
    const today = { type: "object", properties: { items: { type: "array", items: { enum: [null, 1] } } } };
    const tools = [parameters, today].map((one, at) => ({
      type: "function",
      function: { name: `f${at}`, parameters: one },
    }));
    const { body } = await send("anthropic", { messages: [user("x")], tools }, model);
    expect(body["tools"]).toEqual([
      {
        name: "f0",
        input_schema: {
          type: "object",
          properties: {
            pair: { type: "array", prefixItems: [{ type: "string" }, true], items: false },
            more: { type: "integer", exclusiveMinimum: 0, maximum: 9 },
            marked: { type: "string", default: null },
            odd: { type: ["string"], anyOf: [{}, {}] },
            required: { const: null },
          },
          required: ["pair", "marked"],
        },
      },
      { name: "f1", input_schema: today },
    ]);
  });

  test("choices at the top level of a tool's schema, which Claude refuses there, are told in words, at Bedrock as well", async () => {
    const anyOf = [{ required: ["a"] }, { required: ["b"] }];
    const properties = { a: { type: "string" }, b: { anyOf: [{ type: "string" }, { type: "null" }] } };
    const parameters = { type: "object", description: "What to find.", properties, anyOf };
    const tools = [{ type: "function", function: { name: "f", parameters } }];
    const sent = { type: "object", properties, description: `What to find. (anyOf: ${JSON.stringify(anyOf)})` };
    const { body } = await send("anthropic", { messages: [user("x")], tools }, model);
    expect(body["tools"]).toEqual([{ name: "f", input_schema: sent }]);
    const toolConfig = async (name: string) =>
      (await send("bedrock", { messages: [user("x")], tools }, name)).body["toolConfig"];
    const spec = (json: object) => ({ tools: [{ toolSpec: { name: "f", inputSchema: { json } } }] });
    expect(await toolConfig("anthropic.claude-haiku-4-5-20251001-v1:0")).toMatchObject(spec(sent));
    expect(await toolConfig("us.meta.llama4-maverick-17b-instruct-v1:0")).toMatchObject(spec(parameters));
  });

  test("an answer to go on with ends clean; text files and images go as such, other files are refused", async () => {
    const file = (media: string) => ({ type: "file", file: { file_data: `data:${media};base64,aGk=`, filename: "f" } });
    const messages = [user([file("text/csv"), file("image/png")]), { role: "assistant", content: "So: \n" }];
    const { body } = await send("anthropic", { messages }, model);
    expect(body["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "document", source: { type: "text", media_type: "text/plain", data: "hi" }, title: "f" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "So:" }] },
    ]);
    const refused = await send("anthropic", { messages: [user([file("application/zip")])] }, model);
    expect(refused.outcome).toMatchObject({ failure: { status: 400, param: "messages[0].content[0].file.file_data" } });
    const converse = await send("bedrock", { messages: [user("x"), messages[1]] }, `anthropic.${model}`);
    expect((converse.body["messages"] as object[])[1]).toEqual({ role: "assistant", content: [{ text: "So:" }] });
  });

  test("a model that cannot be made to call a tool is told the schema that it cannot keep, here and on Bedrock", async () => {
    const format = { type: "json_schema", json_schema: { name: "answer", schema: { type: "object", not: {} } } };
    const said = 'code fence. It satisfies this JSON schema: {"type":"object","not":{}}';
    for (const kind of ["anthropic", "bedrock"] as const) {
      const request = { messages: [user("x")], tools: [tool("a")], response_format: format };
      const { body, outcome } = await send(kind, request, "anthropic.claude-opus-5-5");
      expect(JSON.stringify(body["system"])).toContain(JSON.stringify(said).slice(1, -1));
      expect(JSON.stringify(body)).not.toContain('"any"');
      expect(outcome).toMatchObject({ notes: { responseFormat: "emulated" } });
    }
  });
});
