// What leaves for Gemini, case by case of its documentation, as a real server receives it.
import { describe, expect, test } from "vitest";
import {
  called,
  conversation,
  jsonSchema,
  PIXEL,
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
    };
    const { body, path, headers } = await send("google", request, model);
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
  });

  test("calls of one id, as some servers give them in each turn, are told apart with their results", async () => {
    const calling = (...names: string[]) => ({
      role: "assistant",
      tool_calls: names.map((name) => ({
        id: `call_${names.length > 2 ? "" : name}`,
        ...{ type: "function", function: { name, arguments: "{}" } },
      })),
    });
    const turn = [calling("a", "b"), result("call_b", "b"), result("call_a", "a")];
    const same = [calling("a", "b", "c"), ...["a", "b", "c"].map((name) => result("call_", name))];
    const { body } = await send("google", { messages: [user("x"), ...turn, ...turn, ...same] }, model);
    const parts = (body["contents"] as { parts: Record<string, { id: string; name: string; response?: unknown }>[] }[])
      .map((content) => content.parts)
      .slice(1);
    const told = [
      ["call_a", "call_b"],
      ["call_a-2", "call_b-2"],
      ["call_", "call_-2", "call_-3"],
    ];
    for (const [at, ids] of told.entries()) {
      const names = ["a", "b", "c"].slice(0, ids.length);
      expect(parts[2 * at]?.map((part) => part["functionCall"])).toMatchObject(
        names.map((name, n) => ({ id: ids[n], name })),
      );
      expect(parts[2 * at + 1]?.map((part) => part["functionResponse"])).toEqual(
        names.map((name, n) => ({ id: ids[n], name, response: { result: name } })),
      );
    }
  });

  test("a model with a colon or a path goes verbatim", async () => {
    const { path } = await send("google", { messages: [user("x")] }, "tunedModels/my:model.1");
    expect(path).toBe("/v1beta/tunedModels/my%3Amodel.1:generateContent");
  });

  test("a tool whose name Gemini refuses goes under one of its own, and comes back under the caller's", async () => {
    const tools = [tool("1st"), tool("-x"), tool("_2nd"), tool("2nd")];
    const messages = [user("x"), called("a"), result("a", "1"), user("y")];
    const earlier = JSON.parse(JSON.stringify(messages).replaceAll("f_a", "1st"));
    const tool_choice = { type: "function", function: { name: "1st" } };
    const { body } = await send("google", { messages: earlier, tools, tool_choice }, model);
    const names = [...JSON.stringify(body).matchAll(/"(?:name|allowedFunctionNames)":\[?"([^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect(names).toEqual(["_1st", "_1st", "_1st", "_-x", "_2nd", "_2nd_2", "_1st"]);
    const parts = ["_1st", "_-x", "_2nd", "_2nd_2"].map((name) => ({ functionCall: { name, args: {} } }));
    const answer = JSON.stringify({ candidates: [{ content: { parts }, finishReason: "STOP" }] });
    for (const stream of [false, true]) {
      upstream.answer = (response) => void response.end(stream ? `data: ${answer}\n\n` : answer);
      const request = callOf({ messages: [user("x")], tools, stream });
      const outcome = await providers.google.chat(request, targetOf("google", upstream, model), optionsOf());
      const said = outcome.kind === "completion" ? outcome.body.toString() : (await collect(outcome)).text;
      const back = [...said.matchAll(/"name":"([^"]+)"/g)].map(([, name]) => name);
      expect(back, String(stream)).toEqual(tools.map((one) => one.function.name));
    }
  });

  test("an empty stop sequence asks for nothing", async () => {
    const { body } = await send("google", { messages: [user("x")], stop: ["", "A"] }, model);
    expect(body["generationConfig"]).toEqual({ stopSequences: ["A"] });
    for (const kind of ["google", "bedrock", "anthropic"] as const)
      for (const stop of ["", []]) {
        const sent = await send(kind, { messages: [user("x")], stop }, model);
        expect(JSON.stringify(sent.body), kind).not.toMatch(/stop/i);
      }
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

  test("results stand in the order of their calls, by which Gemini tells them apart", async () => {
    const ours = ["call_0123456789abcdef01234567", "call_123456789abcdef012345678"] as const;
    const messages = [user("x"), called(...ours), result(ours[1], "second"), user("and?"), result(ours[0], "first")];
    const { body } = await send("google", { messages }, model);
    expect((body["contents"] as { parts: unknown[] }[])[2]?.parts).toEqual([
      { functionResponse: { name: `f_${ours[0]}`, response: { result: "first" } } },
      { text: "and?" },
      { functionResponse: { name: `f_${ours[1]}`, response: { result: "second" } } },
    ]);
  });

  test("a conversation that begins with a call gets a user's turn before it", async () => {
    const { body } = await send("google", { messages: [called("t1"), result("t1", "ok")] }, "gemini-3-flash-preview");
    expect(body["contents"]).toMatchObject([
      { role: "user", parts: [{ text: "(The assistant begins.)" }] },
      { role: "model" },
      { role: "user", parts: [{ functionResponse: {} }] },
    ]);
  });

  test("an image that was drawn goes back with its turn, for whoever asks to change it", async () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` }, index: 0 };
    const signed = { ...image, index: 1, extra_content: { google: { thought_signature: "c2lnbmVk" } } };
    const drawn = { role: "assistant", content: "here", images: [image, signed, "no image"] };
    const { body } = await send("google", { messages: [user("draw"), drawn, user("in blue")] }, "gemini-3-pro-image");
    const inlineData = { mimeType: "image/png", data: PIXEL };
    expect((body["contents"] as { parts: unknown }[])[1]?.parts).toEqual([
      { text: "here" },
      { inlineData },
      { inlineData, thoughtSignature: "c2lnbmVk" },
    ]);
  });

  test("before Gemini 3 the form of an answer is told in words beside tools; parameters are always an object's", async () => {
    const request = { messages: [user("x")], tools: [tool("a")], response_format: jsonSchema };
    const old = await send("google", request, "gemini-2.5-flash");
    expect(JSON.stringify(old.body["systemInstruction"])).toContain("JSON schema");
    expect(old.body["generationConfig"]).toEqual({});
    expect(old.outcome).toMatchObject({ notes: { responseFormat: "emulated" } });
    for (const [asked, name] of [
      [request, "gemini-3-flash-preview"],
      [{ ...request, tools: [] }, "gemini-2.5-flash"],
    ] as const) {
      const { body, outcome } = await send("google", asked, name);
      const form = { responseMimeType: "application/json", responseJsonSchema: schema };
      expect(body["generationConfig"]).toMatchObject(form);
      expect(outcome).toMatchObject({ notes: { responseFormat: "native" } });
    }
    const bare = { type: "function", function: { name: "f", parameters: {} } };
    const { body } = await send("google", { messages: [user("x")], tools: [bare] }, "gemini-2.5-flash");
    expect(JSON.stringify(body["tools"])).toContain('"parametersJsonSchema":{"type":"object"}');
  });

  test("strict tools are validated; a constant is an enum of one; Gemma has its system prompt in the first turn", async () => {
    const parameters = { type: "object", properties: { const: { const: "a" }, b: { anyOf: [{ const: 1 }, {}] } } };
    const strict = { type: "function", function: { name: "a", strict: true, parameters } };
    const messages = [{ role: "system", content: "be brief" }, user("x")];
    const { body } = await send("google", { messages, tools: [strict] }, model);
    expect(body["toolConfig"]).toEqual({ functionCallingConfig: { mode: "VALIDATED" } });
    const [declared] = (body["tools"] as [{ functionDeclarations: [{ parametersJsonSchema: object }] }])[0]
      .functionDeclarations;
    expect(declared.parametersJsonSchema).toEqual({
      type: "object",
      properties: { const: { type: "string", enum: ["a"] }, b: { anyOf: [{ type: "number", enum: [1] }, {}] } },
    });
    const gemma = await send("google", { messages }, "gemma-3-27b-it");
    expect(gemma.body["systemInstruction"]).toBeUndefined();
    expect(gemma.body["contents"]).toEqual([{ role: "user", parts: [{ text: "be brief" }, { text: "x" }] }]);
  });

  test("references lead to the root's definitions, with nothing beside them that Gemini refuses", async () => {
    const definitions = { B: { type: "object", properties: { again: { $ref: "#/definitions/B", title: "Again" } } } };
    const properties = {
      $ref: { type: "string" },
      own: { $ref: "#/$defs/A", description: "One.", default: 1, title: "Own", type: "integer" },
      old: { type: "array", items: { $ref: "#/definitions/B" } },
      same: { $ref: "#/properties/old/items" },
      lost: { $ref: "#/components/schemas/X", type: "object" },
    };
    const $defs = { A: { type: "integer" }, unused: {} };
    const parameters = { type: "object", properties, $defs, definitions };
    const f = { type: "function", function: { name: "f", parameters } };
    const named = { type: "function", function: { name: "g", parameters: { $ref: "#/definitions/B", definitions } } };
    const { body } = await send("google", { messages: [user("x")], tools: [f, named] }, model);
    const [{ functionDeclarations: declared }] = body["tools"] as [
      { functionDeclarations: { parametersJsonSchema: unknown }[] },
    ];
    const b = (name: string) => ({ type: "object", properties: { again: { $ref: `#/$defs/${name}` } } });
    expect(declared.map((one) => one.parametersJsonSchema)).toEqual([
      {
        type: "object",
        properties: {
          $ref: { type: "string" },
          own: { $ref: "#/$defs/A", description: "One.", default: 1 },
          old: { type: "array", items: { $ref: "#/$defs/B__1" } },
          same: { $ref: "#/$defs/items__2" },
          lost: { type: "object" },
        },
        $defs: { A: { type: "integer" }, B__1: b("B__1"), items__2: { $ref: "#/$defs/B__1" } },
      },
      { ...b("B__0"), $defs: { B__0: b("B__0") } },
    ]);
  });

  test("a reference is a fragment of a URI: the names of generic types are percent-encoded in it", async () => {
    const definitions = { "List<Item>": { type: "object", properties: { first: { type: "string" } } } };
    const reference = { $ref: "#/definitions/List%3CItem%3E" };
    const held = { type: "object", properties: { list: reference }, definitions };
    const tools = [{ ...reference, definitions }, held].map((parameters, at) => ({
      type: "function",
      function: { name: `f${at}`, parameters },
    }));
    const { body } = await send("google", { messages: [user("x")], tools }, model);
    const list = definitions["List<Item>"];
    expect(body["tools"]).toMatchObject([
      {
        functionDeclarations: [
          { parametersJsonSchema: list },
          {
            parametersJsonSchema: {
              properties: { list: { $ref: "#/$defs/root__0" } },
              $defs: { root__0: list },
            },
          },
        ],
      },
    ]);
  });

  test("a result in which a reference stands goes as text: Gemini looks for a part of that name", async () => {
    const messages = [user("x"), called("t1"), result("t1", '{"schema":{"$ref":"#/$defs/A"}}')];
    const { body } = await send("google", { messages }, model);
    expect(JSON.stringify(body)).toContain('"response":{"result":"{\\"schema\\":');
  });

  test.each([
    ["gemini-3.7-flash", "low"],
    ["gemini-3.7-flash-lite", "minimal"],
    ["gemini-3-flash-preview", "minimal"],
    ["gemini-3.1-pro-preview", "low"],
    ["gemini-4-argon", "low"],
    ["gemini-4-flash-lite", "minimal"],
  ])("%s thinks at least %s", async (name, least) => {
    const { body } = await send("google", { messages: [user("x")], reasoning_effort: "minimal" }, name);
    expect(body["generationConfig"]).toMatchObject({ thinkingConfig: { thinkingLevel: least } });
  });

  test.each([
    [{ store: false }, { store: false }],
    [{ store: true }, { store: true }],
    [{ store: null }, {}],
    [{}, {}],
  ])("what a request says of its storing goes on, all else is up to the project: %j", async (asked, told) => {
    const { body } = await send("google", { messages: [user("x")], ...asked }, model);
    expect(body).toEqual({ contents: expect.anything(), generationConfig: {}, ...told });
  });

  test("what samples as it always does is sent no sampling, and the answer says so; names that say nothing are sent it", async () => {
    const request = { messages: [user("x")], temperature: 0.2, top_p: 0.5 };
    for (const name of ["gemini-3.6-flash", "gemini-3.5-flash-lite", "gemini-4-pro"]) {
      const { body, outcome } = await send("google", request, name);
      expect(body["generationConfig"], name).toEqual({});
      expect(outcome).toMatchObject({ notes: { dropped: ["temperature", "top_p"] } });
    }
    for (const name of ["gemini-3.5-flash", "gemini-3-pro-preview", "mine"]) {
      const { body } = await send("google", request, name);
      expect(body["generationConfig"], name).toEqual({ temperature: 0.2, topP: 0.5 });
    }
  });
});
