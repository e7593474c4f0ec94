// What leaves for Bedrock, case by case of its documentation, as a real server receives it.
import { AwsV4Signer } from "aws4fetch";
import { describe, expect, test } from "vitest";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import { eventStreamBytes } from "./event-stream.ts";
import {
  called,
  conversation,
  jsonSchema,
  playUpstream,
  providers,
  result,
  schema,
  send,
  tool,
  upstream,
  user,
} from "./sent.ts";
import { callOf, collect, optionsOf, targetOf } from "./upstream.ts";

playUpstream();

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

  test("what follows a tool's result has a turn of its own at models that do not take them together", async () => {
    const messages = [user("go"), called("t1"), result("t1", "sunny"), user("and?"), user("so?")];
    const turnsOf = async (name: string) => {
      const { body } = await send("bedrock", { messages, tools: [tool("f_t1")] }, name);
      const turns = body["messages"] as { role: string; content: object[] }[];
      return turns.slice(2).map(({ role, content }) => `${role} ${content.flatMap(Object.keys)}`);
    };
    for (const name of ["amazon.nova-lite-v1:0", "us.meta.llama4-maverick-17b-instruct-v1:0"])
      expect(await turnsOf(name)).toEqual(["user toolResult", "assistant text", "user text,text"]);
    const unknown = "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc";
    for (const name of ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", unknown])
      expect(await turnsOf(name)).toEqual(["user toolResult,text,text"]);
  });

  test("results come together behind their calls, whatever the user or the system said in between", async () => {
    const word = { role: "system", content: "brief" };
    const results = [result("t1", "sunny"), user("quick"), word, result("t2", "warm")];
    const messages = [user("go"), called("t1", "t2"), user("so?"), ...results, user("and?")];
    const turnsOf = async (name: string) => {
      const { body } = await send("bedrock", { messages }, name);
      const turns = body["messages"] as { content: object[] }[];
      return turns.slice(2).map(({ content }) => content.flatMap(Object.keys));
    };
    const said = ["text", "text", "text"];
    expect(await turnsOf("amazon.nova-lite-v1:0")).toEqual([["toolResult", "toolResult"], ["text"], said]);
    expect(await turnsOf(model)).toEqual([["toolResult", "toolResult", ...said]]);
  });

  test("schemas say that they are of objects, documents have names of their own, blank results are none", async () => {
    const file = { type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0=" } };
    const request = {
      messages: [user([{ type: "text", text: "read" }, file, file]), called("t1"), result("t1", " ")],
      tools: [{ type: "function", function: { name: "f_t1", parameters: {} } }],
    };
    const { body } = await send("bedrock", request, model);
    expect(body["toolConfig"]).toMatchObject({ tools: [{ toolSpec: { inputSchema: { json: { type: "object" } } } }] });
    expect(body["messages"]).toMatchObject([
      { content: [{ text: "read" }, { document: { name: "file" } }, { document: { name: "file (2)" } }] },
      {},
      { content: [{ toolResult: { content: [{ json: {} }] } }] },
    ]);
    const long = { type: "file", file: { ...file.file, filename: `${"x".repeat(300)}.pdf` } };
    const second = await send("bedrock", { messages: [user([long, long])] }, model);
    expect(JSON.stringify(second.body)).toMatch(/"name":"x{190} \(2\)"/);
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

  test("Nova is told type, properties and required of a tool's schema, and what references refer to: it refuses more", async () => {
    const node = { type: "object", properties: { next: { $ref: "#/$defs/Node", description: "Next." } } };
    const parameters = {
      $schema: "http://json-schema.org/draft-07/schema#",
      ...{ type: "object", properties: { node: { $ref: "#/$defs/Node" }, $ref: { type: "string" } } },
      ...{ required: ["node"], additionalProperties: false, title: "F", $defs: { Node: node } },
    };
    const tools = [{ type: "function", function: { name: "f", parameters } }, tool("a")];
    const { body } = await send("bedrock", { messages: [user("x")], tools }, "us.amazon.nova-lite-v1:0");
    const [f, a] = (body["toolConfig"] as { tools: { toolSpec: { inputSchema: object } }[] }).tools;
    const inner = { type: "object", properties: { next: { description: "Next." } } };
    expect(f?.toolSpec.inputSchema).toEqual({
      json: { type: "object", properties: { node: inner, $ref: { type: "string" } }, required: ["node"] },
    });
    expect(a?.toolSpec.inputSchema).toEqual({ json: tool("a").function.parameters });
  });

  test("a JSON schema is emulated by a forced tool whose input is the answer, whole and streamed", async () => {
    const sent = await send("bedrock", { messages: [user("x")], response_format: jsonSchema }, model);
    expect(sent.body["toolConfig"]).toMatchObject({ toolChoice: { tool: { name: "json" } } });
    // Of two answers the first one counts: the second would be no JSON behind it.
    const use = (toolUseId: string, n: number) => ({ toolUseId, name: "json", input: { n } });
    const content = [{ text: "Sure!" }, { toolUse: use("1", 3) }, { toolUse: use("2", 4) }];
    const usage = { inputTokens: 1, outputTokens: 2 };
    const pieces = [use("1", 3), use("2", 4)].flatMap(({ toolUseId, name, input }, at) => [
      { contentBlockStart: { contentBlockIndex: at + 1, start: { toolUse: { toolUseId, name } } } },
      { contentBlockDelta: { contentBlockIndex: at + 1, delta: { toolUse: { input: JSON.stringify(input) } } } },
      { contentBlockStop: { contentBlockIndex: at + 1 } },
    ]);
    const said = { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Sure!" } } };
    const events = [said, ...pieces, { messageStop: { stopReason: "tool_use" } }, { metadata: { usage } }];
    for (const stream of [false, true]) {
      upstream.answer = (response) =>
        void response.end(
          stream
            ? eventStreamBytes(events.map((event) => JSON.stringify(event)))
            : JSON.stringify({ output: { message: { content } }, stopReason: "tool_use", usage }),
        );
      const asked = callOf({ messages: [user("x")], response_format: jsonSchema, stream });
      const outcome = await providers.bedrock.chat(asked, targetOf("bedrock", upstream, model), optionsOf());
      const text = outcome.kind === "completion" ? outcome.body.toString() : (await collect(outcome)).text;
      const answers = [...text.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map(([, one]) => JSON.parse(one ?? '""'));
      expect(answers.join("")).toBe('{"n":3}');
      expect(text).toContain('"finish_reason":"stop"');
    }
  });

  test("a model that takes no tools in a stream is asked whole, within the attempt, and later at once", async () => {
    const said = "This model doesn't support tool use in streaming mode.";
    const output = { message: { content: [{ toolUse: { toolUseId: "1", name: "a", input: { n: 3 } } }] } };
    upstream.answer = (response, request) => {
      const streamed = request.url?.endsWith("/converse-stream");
      response.writeHead(streamed ? 400 : 200, { "content-type": "application/json" });
      const answer = { output, stopReason: "tool_use", usage: { inputTokens: 1, outputTokens: 2 } };
      response.end(JSON.stringify(streamed ? { message: said } : answer));
    };
    const llama = targetOf("bedrock", upstream, "us.meta.llama4-scout-17b-instruct-v1:0");
    const ask = (more: object = { tools: [tool("a")] }) =>
      providers.bedrock.chat(callOf({ messages: [user("x")], stream: true, ...more }), llama, optionsOf());
    const asked = () => upstream.requests.splice(0).map(({ path }) => path.split("/").at(-1));
    const { events, done, end } = await collect(await ask());
    expect(events[0]).toMatchObject({ choices: [{ delta: { tool_calls: [{ index: 0, function: { name: "a" } }] } }] });
    expect([done, end.usage.output, asked()]).toEqual([true, 2, ["converse-stream", "converse"]]);
    await collect(await ask());
    expect(asked()).toEqual(["converse"]);
    // Without tools it streams.
    await ask({});
    expect(asked()[0]).toBe("converse-stream");
  });

  test("a system prompt keeps its cache breakpoints, documents have names that Converse takes", async () => {
    const part = { type: "text", text: "long", prompt_cache_breakpoint: { mode: "explicit" } };
    const file = { file_data: "data:application/pdf;base64,JVBERi0=", filename: " a  b\t(1)é.pdf" };
    const table = { file_data: "data:text/csv;charset=utf-8;base64,YSxi", filename: "a.csv" };
    const messages = [
      { role: "system", content: [part, { type: "text", text: "short" }] },
      user([
        { type: "text", text: "read" },
        { type: "file", file },
        { type: "file", file: table },
      ]),
    ];
    const { body } = await send("bedrock", { messages }, model);
    expect(body["system"]).toEqual([{ text: "long" }, { cachePoint: { type: "default" } }, { text: "short" }]);
    const csv = { document: { format: "csv", name: "a", source: { bytes: "YSxi" } } };
    expect(body["messages"]).toMatchObject([{ content: [{ text: "read" }, { document: { name: "a b (1)-" } }, csv] }]);
  });

  test("Mistral's models get ids of nine letters and digits, OpenAI's an effort", async () => {
    const messages = [user("x"), called("tooluse_a", "tooluse_b"), result("tooluse_b", "2"), result("tooluse_a", "1")];
    const { body } = await send("bedrock", { messages }, "mistral.mistral-large-2407-v1:0");
    const ids = [...JSON.stringify(body["messages"]).matchAll(/"toolUseId":"([^"]+)"/g)].map((match) => match[1]);
    expect(ids).toEqual([ids[0], ids[1], ids[1], ids[0]]);
    for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
  });

  test.each([
    ["us.openai.gpt-5.6-luna", "xhigh", { reasoning: { effort: "xhigh" } }],
    ["openai.gpt-6-sol", "minimal", { reasoning: { effort: "low" } }],
    ["openai.gpt-oss-120b-1:0", "xhigh", { reasoning_effort: "high" }],
    ["us.amazon.nova-2-lite-v1:0", "low", { reasoningConfig: { type: "enabled", maxReasoningEffort: "low" } }],
    ["us.amazon.nova-2-lite-v1:0", "none", { reasoningConfig: { type: "disabled" } }],
  ])("%s is told an effort of %s in its own words", async (name, effort, fields) => {
    const { body } = await send("bedrock", { messages: [user("x")], reasoning_effort: effort }, name);
    expect(body["additionalModelRequestFields"]).toEqual(fields);
  });

  test("schemas go natively where Bedrock keeps them, and by an instruction where no tool can be forced", async () => {
    const ask = { messages: [user("x")], response_format: jsonSchema };
    const native = await send("bedrock", { ...ask, reasoning_effort: "low" }, "us.anthropic.claude-sonnet-4-6");
    const structure = {
      jsonSchema: { name: "answer", schema: JSON.stringify({ ...schema, additionalProperties: false }) },
    };
    expect(native.body).toMatchObject({ outputConfig: { textFormat: { type: "json_schema", structure } } });
    expect(native.body["additionalModelRequestFields"]).toMatchObject({ thinking: { type: "adaptive" } });
    expect(native.body["toolConfig"]).toBeUndefined();
    expect(native.outcome).toMatchObject({ notes: { responseFormat: "native" } });
    const told = await send("bedrock", ask, "us.meta.llama3-3-70b-instruct-v1:0");
    expect(told.body).not.toHaveProperty("toolConfig");
    expect(JSON.stringify(told.body["system"])).toContain("JSON schema");
    const mistral = await send("bedrock", ask, "mistral.mistral-large-2407-v1:0");
    expect(mistral.body["toolConfig"]).toMatchObject({ toolChoice: { any: {} } });
  });

  test("a call that is demanded is no answer to a schema; who can be told only to call something is given that tool alone", async () => {
    const named = { type: "function", function: { name: "b" } };
    const asked = async (choice: unknown, name: string, more = {}) => {
      const request = { messages: [user("x")], tools: [tool("a"), tool("b")], tool_choice: choice, ...more };
      const { toolConfig } = (await send("bedrock", request, name)).body as {
        toolConfig: { tools: { toolSpec: { name: string } }[]; toolChoice: object };
      };
      return [toolConfig.tools.map(({ toolSpec }) => toolSpec.name).join(), toolConfig.toolChoice];
    };
    const format = { response_format: jsonSchema };
    const nova = "amazon.nova-pro-v1:0";
    expect(await asked("auto", nova, format)).toEqual(["a,b,json", { any: {} }]);
    expect(await asked("required", nova, format)).toEqual(["a,b", { any: {} }]);
    expect(await asked(named, nova, format)).toEqual(["a,b", { tool: { name: "b" } }]);
    expect(await asked("none", nova, format)).toEqual(["json", { tool: { name: "json" } }]);
    expect(await asked(named, "mistral.mistral-large-2407-v1:0")).toEqual(["b", { any: {} }]);
    // The tool for the answer keeps it from those that the conversation has used; without it nothing does.
    const past = { messages: conversation };
    expect(await asked("none", nova, { ...format, ...past })).toEqual(["json", { tool: { name: "json" } }]);
    const { outcome } = await send("bedrock", { ...past, tools: [tool("a")], tool_choice: "none" }, nova);
    expect(outcome).toMatchObject({ failure: { param: "tool_choice", code: "unsupported_parameter" } });
  });

  test("a model that cannot be made to call a tool is passed over by policies for it; asked for by name, it is asked", async () => {
    const llama = "meta.llama3-3-70b-instruct-v1:0";
    const request = { messages: [user("x")], tools: [tool("a")], tool_choice: "required" } as unknown as ChatRequest;
    expect(providers.bedrock.unsupported(request, llama)).toMatchObject([{ param: "tool_choice", leftToVendor: true }]);
    expect(providers.bedrock.unsupported(request, "amazon.nova-pro-v1:0")).toEqual([]);
    expect((await send("bedrock", request, llama)).body["toolConfig"]).toMatchObject({ toolChoice: { any: {} } });
    const dropped = await send("bedrock", request, llama, { dropUnsupported: true });
    expect(dropped.body["toolConfig"]).toMatchObject({ toolChoice: { auto: {} } });
    expect(dropped.outcome).toMatchObject({ notes: { dropped: ["tool_choice"] } });
  });

  test("a model that reads no images or knows no tools is passed over by policies for them; asked for by name, it is asked", async () => {
    const url = "data:image/png;base64,iVBORw0KGgo=";
    const picture = { messages: [user("x"), { role: "user", content: [{ type: "image_url", image_url: { url } }] }] };
    const called = { messages: [user("x")], tools: [tool("a")] };
    const lacks = (request: object, model: string) =>
      providers.bedrock
        .unsupported(request as ChatRequest, model)
        .map(({ param, leftToVendor }) => [param, leftToVendor]);
    const sees = [
      "claude-haiku-4-5",
      "nova-lite-v1:0",
      "llama3-2-11b",
      "llama4-scout",
      "pixtral",
      "qwen.qwen3-vl",
      "arn:aws:x",
    ];
    for (const model of sees) expect(lacks(picture, model), model).toEqual([]);
    for (const model of [
      "us.meta.llama3-1-8b-instruct-v1:0",
      "meta.llama3-70b-instruct-v1:0",
      "amazon.nova-micro-v1:0",
    ])
      expect(lacks(picture, model), model).toEqual([["messages[1].content[0]", true]]);
    for (const model of ["meta.llama3-1-8b-instruct-v1:0", "amazon.nova-micro-v1:0", "deepseek.v3-v1:0"])
      expect(lacks(called, model), model).toEqual([]);
    for (const model of ["us.deepseek.r1-v1:0", "meta.llama3-8b-instruct-v1:0", "mistral.mixtral-8x7b-instruct-v0:1"])
      expect(lacks(called, model), model).toEqual([["tools", true]]);
    expect((await send("bedrock", picture, "amazon.nova-micro-v1:0")).outcome).toMatchObject({ kind: "completion" });
    expect((await send("bedrock", called, "us.deepseek.r1-v1:0")).body).toHaveProperty("toolConfig");
  });

  test("a strict tool is one where Bedrock keeps its schema; where it does not, the answer says so", async () => {
    const strict = (name: string, parameters: object) => ({
      type: "function",
      function: { name, strict: true, parameters: { type: "object", ...parameters } },
    });
    const kept = strict("kept", { properties: { a: { type: "integer", minimum: 1 } }, required: ["a"] });
    const open = strict("open", { additionalProperties: { type: "string" } });
    const messages = [user("x")];
    const json = {
      type: "object",
      properties: { a: { type: "integer", description: "(minimum: 1)" } },
      required: ["a"],
      additionalProperties: false,
    };
    for (const name of ["us.anthropic.claude-sonnet-4-6", "qwen.qwen3-32b-v1:0"]) {
      const { body, outcome } = await send("bedrock", { messages, tools: [kept] }, name);
      const tools = [{ toolSpec: { name: "kept", inputSchema: { json }, strict: true } }];
      expect(body["toolConfig"]).toEqual({ tools, toolChoice: { auto: {} } });
      expect(outcome).toMatchObject({ notes: { dropped: [] } });
    }
    for (const [tools, name] of [
      [[kept, open], "us.anthropic.claude-sonnet-4-6"],
      [[kept], "us.amazon.nova-2-lite-v1:0"],
    ] as const) {
      const { body, outcome } = await send("bedrock", { messages, tools }, name);
      const { name: last, parameters } = tools.at(-1)?.function ?? {};
      expect((body["toolConfig"] as { tools: object[] }).tools.at(-1)).toEqual({
        toolSpec: { name: last, inputSchema: { json: parameters } },
      });
      expect(outcome).toMatchObject({ notes: { dropped: ["tools.function.strict"] } });
    }
  });

  test("Claude says how much of its answer it thought, whole and streamed", async () => {
    const usage = { inputTokens: 5, outputTokens: 9 };
    const additionalModelResponseFields = { usage: { output_tokens_details: { thinking_tokens: 6 } } };
    const whole = { output: { message: { content: [{ text: "hi" }] } }, stopReason: "end_turn", usage };
    const events = [
      { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "hi" } } },
      { messageStop: { stopReason: "end_turn", additionalModelResponseFields } },
      { metadata: { usage } },
    ];
    for (const stream of [false, true]) {
      upstream.answer = (response) =>
        void response.end(
          stream
            ? eventStreamBytes(events.map((event) => JSON.stringify(event)))
            : JSON.stringify({ ...whole, additionalModelResponseFields }),
        );
      const request = callOf({ messages: [user("x")], reasoning_effort: "low", stream });
      const target = targetOf("bedrock", upstream, "us.anthropic.claude-sonnet-4-6");
      const outcome = await providers.bedrock.chat(request, target, optionsOf());
      const counted = outcome.kind === "completion" ? outcome.usage : (await collect(outcome)).end.usage;
      expect(counted).toEqual({ input: 5, cached: 0, cache_write: 0, output: 3, reasoning: 6 });
      const sent = JSON.parse(upstream.requests.at(-1)?.body ?? "");
      expect(sent.additionalModelResponseFieldPaths).toEqual(["/usage/output_tokens_details"]);
    }
  });

  test("Claude is kept from calling in parallel beside Converse's own choice", async () => {
    const request = { messages: [user("x")], tools: [tool("a")], tool_choice: "required", parallel_tool_calls: false };
    const { body } = await send("bedrock", request, "us.anthropic.claude-sonnet-4-5-20250929-v1:0");
    expect(body).toMatchObject({
      toolConfig: { toolChoice: { any: {} } },
      additionalModelRequestFields: { tool_choice: { disable_parallel_tool_use: true } },
    });
    const { outcome } = await send("bedrock", request, model);
    expect(outcome).toMatchObject({ kind: "failure", failure: { param: "parallel_tool_calls" } });
  });

  test("a conversation that the assistant begins gets a user's turn before it, documents a word beside them", async () => {
    const file = { type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0=", filename: "a.pdf" } };
    const messages = [{ role: "assistant", content: "Hello!" }, user([file])];
    const { body } = await send("bedrock", { messages }, "amazon.nova-pro-v1:0");
    expect(body["messages"]).toMatchObject([
      { role: "user", content: [{ text: "(The assistant begins.)" }] },
      { role: "assistant" },
      { role: "user", content: [{ text: "a" }, { document: { name: "a" } }] },
    ]);
  });
});
