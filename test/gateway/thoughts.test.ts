// What a provider thought over a tool loop through OpenAI's format: signed thinking and thought signatures reach it again unchanged, from
// clients that send everything back and from those that send id, type and function alone.
import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { durableMemory } from "#daemon/gateway/providers/thoughts/durable.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";
import { temporaryStorage } from "#test/temporary.ts";
import { eventStreamBytes } from "./event-stream.ts";
import { playUpstream, providers, result, send, tool, upstream, user } from "./sent.ts";
import { specification } from "./specification.ts";
import { agent, callOf, collect, optionsOf, targetOf } from "./upstream.ts";

playUpstream();

type Kind = "anthropic" | "bedrock";
type Fields = Record<string, unknown>;
interface Message extends Fields {
  tool_calls: { id: string; type: string; function: object }[];
}

const SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=";
const REDACTED = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPk";
const model = { anthropic: "claude-sonnet-4-5", bedrock: "anthropic.claude-sonnet-4-5-v1:0" };
const ask = { tools: [tool("f")], reasoning_effort: "low" };

const blocks = {
  anthropic: [
    { type: "thinking", thinking: "I must look.", signature: SIGNATURE },
    { type: "redacted_thinking", data: REDACTED },
    { type: "text", text: "Let me see." },
    { type: "tool_use", id: "toolu_1", name: "f", input: { a: "1" } },
  ],
  bedrock: [
    { reasoningContent: { reasoningText: { text: "I must look.", signature: SIGNATURE } } },
    { reasoningContent: { redactedContent: REDACTED } },
    { text: "Let me see." },
    { toolUse: { toolUseId: "toolu_1", name: "f", input: { a: "1" } } },
  ],
};
const whole = {
  anthropic: {
    id: "msg_1",
    type: "message",
    model: "m",
    content: blocks.anthropic,
    stop_reason: "tool_use",
    usage: { input_tokens: 1, output_tokens: 2 },
  },
  bedrock: {
    output: { message: { role: "assistant", content: blocks.bedrock } },
    stopReason: "tool_use",
    usage: { inputTokens: 1, outputTokens: 2 },
  },
};
const start = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, part: object) => ({ type: "content_block_delta", index, delta: part });
const stop = (index: number) => ({ type: "content_block_stop", index });
const events = {
  anthropic: [
    {
      type: "message_start",
      message: { id: "msg_1", model: "m", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
    },
    start(0, { type: "thinking", thinking: "", signature: "" }),
    delta(0, { type: "thinking_delta", thinking: "I must " }),
    delta(0, { type: "thinking_delta", thinking: "look." }),
    delta(0, { type: "signature_delta", signature: SIGNATURE }),
    stop(0),
    start(1, { type: "redacted_thinking", data: REDACTED }),
    stop(1),
    start(2, { type: "text", text: "" }),
    delta(2, { type: "text_delta", text: "Let me see." }),
    stop(2),
    start(3, { type: "tool_use", id: "toolu_1", name: "f", input: {} }),
    delta(3, { type: "input_json_delta", partial_json: '{"a":"1"}' }),
    stop(3),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ].map((event) => JSON.stringify(event)),
  bedrock: [
    { contentBlockDelta: { contentBlockIndex: 0, delta: { reasoningContent: { text: "I must look." } } } },
    { contentBlockDelta: { contentBlockIndex: 0, delta: { reasoningContent: { signature: SIGNATURE } } } },
    { contentBlockStop: { contentBlockIndex: 0 } },
    { contentBlockDelta: { contentBlockIndex: 1, delta: { reasoningContent: { redactedContent: REDACTED } } } },
    { contentBlockStop: { contentBlockIndex: 1 } },
    { contentBlockDelta: { contentBlockIndex: 2, delta: { text: "Let me see." } } },
    { contentBlockStop: { contentBlockIndex: 2 } },
    { contentBlockStart: { contentBlockIndex: 3, start: { toolUse: { toolUseId: "toolu_1", name: "f" } } } },
    { contentBlockDelta: { contentBlockIndex: 3, delta: { toolUse: { input: '{"a":"1"}' } } } },
    { contentBlockStop: { contentBlockIndex: 3 } },
    { messageStop: { stopReason: "tool_use" } },
    { metadata: { usage: { inputTokens: 1, outputTokens: 2 } } },
  ].map((event) => JSON.stringify(event)),
};

/** The assistant's message as a client puts it together. */
async function answered(kind: Kind, streamed: boolean): Promise<Message> {
  upstream.answer = (response) => {
    if (!streamed) return void response.end(JSON.stringify(whole[kind]));
    if (kind === "bedrock") return void response.end(eventStreamBytes(events.bedrock));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.anthropic.map((event) => `data: ${event}\n\n`).join(""));
  };
  const request = { messages: [user("x")], ...ask, ...(streamed ? { stream: true } : {}) };
  const outcome = await providers[kind].chat(callOf(request), targetOf(kind, upstream, model[kind]), optionsOf());
  if (outcome.kind === "completion") {
    const completion = JSON.parse(outcome.body.toString());
    specification()?.completion(completion);
    return completion.choices[0].message;
  }
  const message: Fields = { role: "assistant", content: "", reasoning_details: [], tool_calls: [] };
  for (const event of (await collect(outcome)).events as { choices: { delta: Fields }[] }[]) {
    specification()?.chunk(event);
    const part = event.choices[0]?.delta ?? {};
    message["content"] += (part["content"] as string) ?? "";
    (message["reasoning_details"] as unknown[]).push(...((part["reasoning_details"] as unknown[]) ?? []));
    for (const call of (part["tool_calls"] as { id?: string; function: { arguments: string } }[]) ?? []) {
      const calls = message["tool_calls"] as { function: { arguments: string } }[];
      if (call.id) calls.push(call);
      else if (calls[0]) calls[0].function.arguments += call.function.arguments;
    }
  }
  return message as Message;
}

const bare = ({ content, tool_calls }: Message) => ({
  role: "assistant",
  content,
  tool_calls: tool_calls.map(({ id, type, function: called }) => ({ id, type, function: called })),
});

describe.each(["anthropic", "bedrock"] as const)("%s", (kind) => {
  test.each([
    ["whole", false],
    ["streamed", true],
  ])("thinking comes back from id, type and function alone: %s", async (_name, streamed) => {
    const message = await answered(kind, streamed);
    const messages = [user("x"), bare(message), result("toolu_1", "ok")];
    const { body, outcome } = await send(kind, { messages, ...ask }, model[kind]);
    expect((body["messages"] as { content: unknown }[])[1]?.content).toEqual(blocks[kind]);
    expect(JSON.stringify(body)).toContain("budget_tokens");
    expect(outcome).toMatchObject({ notes: { dropped: [] } });
    // The conversation goes on at the other of Claude's services.
    const other = kind === "anthropic" ? "bedrock" : "anthropic";
    const there = await send(other, { messages, ...ask }, model[other]);
    expect((there.body["messages"] as { content: unknown }[])[1]?.content).toEqual(blocks[other]);
    // Whoever does not reason is not told, nor is another caller.
    const plain = await send(kind, { messages, tools: ask.tools }, model[kind]);
    expect(JSON.stringify(plain.body)).not.toContain("I must look");
    const stranger = await send(kind, { messages, ...ask }, model[kind], { caller: "token:other" });
    expect(JSON.stringify(stranger.body)).not.toContain("I must look");
  });

  test.each([
    ["whole", false],
    ["streamed", true],
  ])(
    "and from reasoning_details after a restart; without them the effort is dropped, and said so: %s",
    async (_name, streamed) => {
      const message = await answered(kind, streamed);
      const later = createProviders(agent)[kind];
      const again = async (assistant: object) => {
        upstream.answer = (response) => void response.end(JSON.stringify(whole[kind]));
        const request = { messages: [user("x"), assistant, result("toolu_1", "ok")], ...ask };
        const outcome = await later.chat(callOf(request), targetOf(kind, upstream, model[kind]), optionsOf());
        return { outcome, body: JSON.parse(upstream.requests.at(-1)?.body ?? "") };
      };
      const without = await again(bare(message));
      expect(without.outcome).toMatchObject({ notes: { dropped: ["reasoning_effort"] } });
      expect(JSON.stringify(without.body)).not.toContain("budget_tokens");
      const kept = await again(message);
      expect(kept.body.messages[1].content).toEqual(blocks[kind]);
      expect(kept.outcome).toMatchObject({ notes: { dropped: [] } });
    },
  );
});

// Claude 5 thinks unasked; since 5.1 and 5.5 what it thought counts only after the very words that it was thought after, and a client that
// edits its history would be refused for thoughts that it has never seen.
test.each([
  ["claude-sonnet-5", undefined],
  ["claude-haiku-5-5", { block_binding: { prefix_mismatch_behavior: "drop_block" }, type: "adaptive" }],
  ["claude-opus-5-5", { block_binding: { prefix_mismatch_behavior: "drop_block" }, type: "adaptive" }],
])("thinking goes back unasked, and passes for none after other words: %s", async (name, thinking) => {
  const message = await answered("anthropic", false);
  const messages = [user("edited"), bare(message), result("toolu_1", "ok")];
  const own = { "anthropic-beta": "mine-1" };
  upstream.answer = (response) => void response.end(JSON.stringify(whole.anthropic));
  const target = { ...targetOf("anthropic", upstream, name), headers: own };
  await providers.anthropic.chat(callOf({ messages }), target, optionsOf());
  const seen = upstream.requests.at(-1);
  const body = JSON.parse(seen?.body ?? "");
  expect(body.messages[1].content).toEqual(blocks.anthropic);
  expect(body.thinking).toEqual(thinking);
  const beta = "thinking-binding-controls-2026-08-01";
  expect(seen?.headers["anthropic-beta"]).toBe(thinking ? `mine-1,${beta}` : "mine-1");
  const converse = await send("bedrock", { messages }, `anthropic.${name}`);
  expect((converse.body["messages"] as { content: unknown }[])[1]?.content).toEqual(blocks.bedrock);
  expect(converse.body["additionalModelRequestFields"]).toEqual(thinking && { thinking, anthropic_beta: [beta] });
  // Without thoughts there is nothing to pass over.
  const plain = await send("anthropic", { messages: [user("x")] }, name);
  expect(plain.body["thinking"]).toBeUndefined();
});

test("a server that counts its calls anew is not given what it thought before an earlier call of the same id", async () => {
  await answered("anthropic", true);
  const unthought = { ...whole.anthropic, content: blocks.anthropic.slice(2) };
  upstream.answer = (response) => void response.end(JSON.stringify(unthought));
  const request = { messages: [user("y")], ...ask };
  await providers.anthropic.chat(callOf(request), targetOf("anthropic", upstream, "claude-opus-4-6"), optionsOf());
  const call = { id: "toolu_1", type: "function", function: { name: "f", arguments: '{"a":"1"}' } };
  const messages = [
    user("y"),
    { role: "assistant", content: "Let me see.", tool_calls: [call] },
    result("toolu_1", "ok"),
  ];
  const { body } = await send("anthropic", { messages, ...ask }, "claude-opus-4-6");
  expect((body["messages"] as { content: unknown }[])[1]?.content).toEqual(unthought.content);
});

test("a client's own idea of reasoning_details is left out, and OpenAI's service is told of none", async () => {
  const broken = [
    null,
    7,
    { type: "reasoning.text", text: "no signature", format: "anthropic-claude-v1" },
    { type: "reasoning.text", text: "x", signature: "y", format: "other" },
  ];
  for (const details of [broken, "text", { a: 1 }]) {
    const called = { id: "unheard", type: "function", function: { name: "f", arguments: "{}" } };
    const assistant = { role: "assistant", content: null, tool_calls: [called], reasoning_details: details };
    const { body } = await send(
      "anthropic",
      { messages: [user("x"), assistant, result("unheard", "ok")], ...ask },
      model.anthropic,
    );
    expect((body["messages"] as { content: unknown[] }[])[1]?.content).toHaveLength(1);
  }
});

test("what OpenAI's models on Bedrock thought, encrypted, comes back to them and to no Claude", async () => {
  const gpt = "us.openai.gpt-5.6-luna";
  const content = [
    { reasoningContent: { redactedContent: REDACTED } },
    { toolUse: { toolUseId: "call_gpt", name: "f", input: { a: "1" } } },
  ];
  const answer = { ...whole.bedrock, output: { message: { role: "assistant", content } } };
  upstream.answer = (response) => void response.end(JSON.stringify(answer));
  await providers.bedrock.chat(
    callOf({ messages: [user("x")], ...ask }),
    targetOf("bedrock", upstream, gpt),
    optionsOf(),
  );
  const bare = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_gpt", type: "function", function: { name: "f", arguments: '{"a":"1"}' } }],
  };
  const messages = [user("x"), bare, result("call_gpt", "ok")];
  const { body } = await send("bedrock", { messages, ...ask }, gpt);
  expect((body["messages"] as { content: unknown }[])[1]?.content).toEqual(content);
  const claude = await send("bedrock", { messages, ...ask }, model.bedrock);
  expect(JSON.stringify(claude.body["messages"])).not.toContain("reasoningContent");
});

test("what was encrypted comes back whole though it was streamed in pieces, each of them base64 by itself", async () => {
  const bytes = Buffer.from("four bytes and some more");
  const pieces = [bytes.subarray(0, 4), bytes.subarray(4)].map((piece) => piece.toString("base64"));
  const lines = events.bedrock.flatMap((line) => {
    if (!line.includes("redactedContent")) return [line];
    return pieces.map((redactedContent) =>
      JSON.stringify({ contentBlockDelta: { contentBlockIndex: 1, delta: { reasoningContent: { redactedContent } } } }),
    );
  });
  upstream.answer = (response) => {
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    response.end(eventStreamBytes(lines));
  };
  const asked = callOf({ messages: [user("x")], stream: true, ...ask });
  const got = await collect(
    await providers.bedrock.chat(asked, targetOf("bedrock", upstream, model.bedrock), optionsOf()),
  );
  expect(JSON.stringify(got.events)).toContain(`"data":"${bytes.toString("base64")}"`);
});

describe("servers of OpenAI's format that want their reasoning back", () => {
  const call = { id: "call_0", type: "function", function: { name: "f", arguments: "{}" } };
  const head = { id: "1", created: 1, model: "m" };
  const thought = { role: "assistant", content: null, reasoning_content: "I must look.", tool_calls: [call] };
  const message = {
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message: thought, finish_reason: "tool_calls" }],
  };
  const chunks = [
    { delta: { role: "assistant", reasoning_content: "I must " }, finish_reason: null },
    { delta: { reasoning_content: "look." }, finish_reason: null },
    { delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: null },
    { delta: {}, finish_reason: "tool_calls" },
  ].map((choice) => ({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, ...choice }] }));
  const asked = (system: string) => [{ role: "system", content: system }, user("x")];
  const loop = (system: string) => [
    ...asked(system),
    { role: "assistant", content: "", tool_calls: [call] },
    result("call_0", "ok"),
  ];

  test.each([false, true])(
    "get it from clients that do not send it, each conversation its own; streamed: %s",
    async (stream) => {
      const { openai } = createProviders(agent);
      const ask = async (messages: object[], caller = "token:a") => {
        upstream.answer = (response) => {
          if (!stream) return void response.end(JSON.stringify(message));
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.end(`${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")}data: [DONE]\n\n`);
        };
        const outcome = await openai.chat(
          callOf({ model: "m", messages, stream }, { caller }),
          targetOf("openai", upstream),
          optionsOf(),
        );
        if (stream) await collect(outcome);
        return JSON.parse(upstream.requests.at(-1)?.body ?? "").messages;
      };
      await ask(asked("for Ann"));
      expect((await ask(loop("for Ann")))[2]).toMatchObject({ reasoning_content: "I must look." });
      expect(await ask(loop("for Bob"))).toEqual(loop("for Bob"));
      expect(await ask(loop("for Ann"), "token:b")).toEqual(loop("for Ann"));
    },
  );
});

describe("gemini", () => {
  const target = () => targetOf("google", upstream, "gemini-3-pro-preview");
  const signature = "EqUCCqICAb4+9vsh8Pd5/ZVoPzSvjWW==";
  const answer = {
    candidates: [
      {
        content: {
          parts: [
            { text: "Let me see.", thoughtSignature: "c2lnbmVk" },
            { functionCall: { id: "gem-1", name: "f", args: { x: 1 } }, thoughtSignature: signature },
            { functionCall: { id: "gem-2", name: "f", args: { x: 2 } } },
          ],
        },
        finishReason: "STOP",
      },
    ],
  };

  test("signatures stand in extra_content, and come back from there", async () => {
    upstream.answer = (response) => void response.end(JSON.stringify(answer));
    const outcome = await createProviders(agent).google.chat(callOf({ messages: [user("x")] }), target(), optionsOf());
    if (outcome.kind !== "completion") throw new Error(JSON.stringify(outcome));
    const { message } = JSON.parse(outcome.body.toString()).choices[0];
    expect(message.tool_calls[0]).toMatchObject({
      id: "gem-1",
      extra_content: { google: { thought_signature: signature } },
    });
    const messages = [user("x"), message, result("gem-1", "ok"), result("gem-2", "ok")];
    const { body } = await send("google", { messages }, "gemini-3-pro-preview");
    expect((body["contents"] as { parts: unknown }[])[1]?.parts).toEqual(answer.candidates[0]?.content.parts);
  });

  test("a call without a signature is not given the one of an earlier call of its id", async () => {
    const { google } = createProviders(agent);
    const called = (thoughtSignature?: string) => {
      const part = {
        functionCall: { id: "gem-1", name: "f", args: {} },
        ...(thoughtSignature && { thoughtSignature }),
      };
      return JSON.stringify({ candidates: [{ content: { parts: [part] }, finishReason: "STOP" }] });
    };
    for (const given of [called(signature), called()]) {
      upstream.answer = (response) => void response.end(given);
      await google.chat(callOf({ messages: [user("x")] }), target(), optionsOf());
    }
    const call = { id: "gem-1", type: "function", function: { name: "f", arguments: "{}" } };
    const messages = [user("x"), { role: "assistant", content: null, tool_calls: [call] }, result("gem-1", "ok")];
    await google.chat(callOf({ messages }), target(), optionsOf());
    const [part] = JSON.parse(upstream.requests.at(-1)?.body ?? "").contents[1].parts;
    expect(part.thoughtSignature).toBe("skip_thought_signature_validator");
  });

  test("the text's signature alone is no content: a stream that breaks off after it may be tried elsewhere", async () => {
    const event = (part: object) => `data: ${JSON.stringify({ candidates: [{ content: { parts: [part] } }] })}\n\n`;
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(event({ text: "", thoughtSignature: "c2lnbmVk" }));
    };
    const asked = callOf({ messages: [user("x")], stream: true });
    const outcome = await createProviders(agent).google.chat(asked, target(), optionsOf());
    expect(outcome).toMatchObject({ kind: "failure", failure: { kind: "truncated" } });
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const last = {
        candidates: [{ content: { parts: [{ text: "", thoughtSignature: "c2lnbmVk" }] }, finishReason: "STOP" }],
      };
      response.end(`${event({ text: "hi" })}data: ${JSON.stringify(last)}\n\n`);
    };
    const { events } = await collect(await createProviders(agent).google.chat(asked, target(), optionsOf()));
    expect(JSON.stringify(events.at(-2))).toContain('"extra_content":{"google":{"thought_signature":"c2lnbmVk"}}');
  });

  test("those of Gemini's own ids outlive a restart, sealed, for clients that send back id, type and function", async () => {
    const storage = await temporaryStorage();
    const lines: string[] = [];
    const logger = createLogger({ sinks: [({ text }) => void lines.push(text)] });
    const sealer = createSealer(randomBytes(32), "signatures");
    const start = () => durableMemory(storage.units.gatewaySignature, sealer, systemClock, logger);
    const first = start();
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify(answer)}\n\n`);
    };
    const asked = callOf({ messages: [user("x")], stream: true });
    await collect(await createProviders(agent, first).google.chat(asked, target(), optionsOf()));
    await first.close();
    const second = start();
    const calls = ["gem-1", "gem-2"].map((id, at) => ({
      id,
      type: "function",
      function: { name: "f", arguments: `{"x":${at + 1}}` },
    }));
    const messages = [
      user("x"),
      { role: "assistant", content: null, tool_calls: calls },
      result("gem-1", "ok"),
      result("gem-2", "ok"),
    ];
    upstream.answer = (response) => void response.end(JSON.stringify(answer));
    const google = createProviders(agent, second).google;
    await google.chat(callOf({ messages }), target(), optionsOf());
    const parts = answer.candidates[0]?.content.parts.slice(1);
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? "").contents[1].parts).toEqual(parts);
    // Another caller's calls are not its own.
    await google.chat(callOf({ messages }, { caller: "token:other" }), target(), optionsOf());
    expect(upstream.requests.at(-1)?.body).not.toContain(signature);
    await second.close();
    expect(lines).toEqual([]);
  });
});
