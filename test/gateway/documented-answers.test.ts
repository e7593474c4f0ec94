// Answers written by hand from each vendor's documentation, one behaviour each, over real HTTP. Where the AI SDK reads the same bytes to the
// same end, it is asked too.
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { describe, expect, test } from "vitest";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { cases, type Kind, models } from "./documented-cases.ts";
import { eventStreamBytes } from "./event-stream.ts";
import {
  type SdkModel,
  saidByGateway,
  saidByGatewayStream,
  saidByOutcome,
  saidBySdk,
  saidBySdkStream,
} from "./said.ts";
import { specification } from "./specification.ts";
import { agent, callOf, collect, optionsOf, targetOf, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();
const providers = createProviders(agent);

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
    const ours = await saidByOutcome(outcome);
    expect(ours).toMatchObject(one.said);
    if (one.kind === "google") for (const called of ours.tools) called.id = expect.any(String);
    if (!one.apart) expect(ours).toEqual(streamed ? await saidBySdkStream(sdk(kind)) : await saidBySdk(sdk(kind)));
  });

  test.each([
    [
      "anthropic",
      {
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "twelve chars" }],
        stop_reason: "end_turn",
      },
      [
        { type: "message_start", message: { role: "assistant", content: [] } },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "twelve chars" } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn" } },
        { type: "message_stop" },
      ],
    ],
    [
      "google",
      {
        candidates: [{ content: { role: "model", parts: [{ text: "twelve chars" }] }, finishReason: "STOP", index: 0 }],
      },
      [
        {
          candidates: [
            { content: { role: "model", parts: [{ text: "twelve chars" }] }, finishReason: "STOP", index: 0 },
          ],
        },
      ],
    ],
    [
      "bedrock",
      {
        output: {
          message: {
            role: "assistant",
            content: [
              { toolUse: { toolUseId: "s", name: "nova_grounding", input: {}, type: "server_tool_use" } },
              { text: "twelve chars" },
            ],
          },
        },
        stopReason: "end_turn",
      },
      [
        { messageStart: { role: "assistant" } },
        {
          contentBlockStart: {
            contentBlockIndex: 0,
            start: { toolUse: { toolUseId: "s", name: "nova_grounding", type: "server_tool_use" } },
          },
        },
        { contentBlockDelta: { contentBlockIndex: 0, delta: { toolUse: { input: "{}" } } } },
        { contentBlockStop: { contentBlockIndex: 0 } },
        { contentBlockDelta: { contentBlockIndex: 1, delta: { text: "twelve chars" } } },
        { contentBlockStop: { contentBlockIndex: 1 } },
        { messageStop: { stopReason: "end_turn" } },
        { metadata: { metrics: { latencyMs: 1 } } },
      ],
    ],
  ] as const)(
    "%s: an answer that says nothing of its tokens is estimated, whole as streamed",
    async (kind, answer, events) => {
      upstream.answer = (response) => {
        const streamed =
          upstream.requests.at(-1)?.path.match(/stream/i) || upstream.requests.at(-1)?.body.includes('"stream":true');
        if (!streamed)
          return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
        const lines = events.map((event) => JSON.stringify(event));
        const binary = kind === "bedrock";
        response.writeHead(200, {
          "content-type": binary ? "application/vnd.amazon.eventstream" : "text/event-stream",
        });
        response.end(binary ? eventStreamBytes(lines) : lines.map((line) => `data: ${line}\n\n`).join(""));
      };
      const request = { messages: [{ role: "user", content: "x" }] };
      const ask = (more: object) =>
        providers[kind].chat(callOf({ ...request, ...more }), targetOf(kind, upstream, models[kind]), optionsOf());
      const whole = await ask({});
      if (whole.kind !== "completion") throw new Error(JSON.stringify(whole));
      expect(whole.usage).toMatchObject({ output: 3, estimated: true });
      expect(whole.usage.input).toBeGreaterThan(0);
      expect(saidByGateway(JSON.parse(whole.body.toString()))).toMatchObject({ text: "twelve chars", tools: [] });
      const streamed = await collect(await ask({ stream: true }));
      expect(streamed.end.usage).toEqual(whole.usage);
      expect(saidByGatewayStream(streamed.events)).toMatchObject({ text: "twelve chars", tools: [] });
    },
  );

  describe.each(["anthropic", "bedrock"] as const)("%s: what its counts lack is estimated", (kind) => {
    const answered = (usage: object) => {
      if (kind === "bedrock") {
        const message = { role: "assistant", content: [{ text: "twelve chars" }] };
        const events = [
          { messageStart: { role: "assistant" } },
          { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "twelve chars" } } },
          { contentBlockStop: { contentBlockIndex: 0 } },
          { messageStop: { stopReason: "end_turn" } },
          { metadata: { usage } },
        ];
        return { whole: { output: { message }, stopReason: "end_turn", usage }, events };
      }
      const message = { type: "message", role: "assistant", content: [], usage: { ...usage, output_tokens: 1 } };
      const events = [
        { type: "message_start", message },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "twelve chars" } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
        { type: "message_stop" },
      ];
      const content = [{ type: "text", text: "twelve chars" }];
      return { whole: { ...message, content, stop_reason: "end_turn", usage }, events };
    };
    const [prompt, answer, cached] =
      kind === "bedrock"
        ? ["inputTokens", "outputTokens", "cacheReadInputTokens"]
        : ["input_tokens", "output_tokens", "cache_read_input_tokens"];

    test.each([
      [
        { [prompt]: 100, [cached]: 7 },
        { input: 100, cached: 7, output: 3, estimated: true },
      ],
      [{ [answer]: 50 }, { input: expect.toSatisfy((tokens) => tokens > 0), output: 50, estimated: true }],
      [
        { [answer]: 50, [cached]: 100_000 },
        { input: 0, cached: 100_000, output: 50, estimated: true },
      ],
      [
        { [prompt]: 0, [answer]: 0 },
        { input: 0, output: 0 },
      ],
    ])("%j", async (usage, expected) => {
      const { whole, events } = answered(usage);
      const counted: TokenUsage[] = [];
      for (const stream of [false, true]) {
        upstream.answer = (response) => {
          const lines = events.map((event) => JSON.stringify(event));
          const frames =
            kind === "bedrock" ? eventStreamBytes(lines) : lines.map((line) => `data: ${line}\n\n`).join("");
          response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
          response.end(stream ? frames : JSON.stringify(whole));
        };
        const request = { messages: [{ role: "user", content: "x" }], stream };
        const outcome = await providers[kind].chat(
          callOf(request),
          targetOf(kind, upstream, models[kind]),
          optionsOf(),
        );
        if (outcome.kind === "failure") throw new Error(JSON.stringify(outcome));
        counted.push(outcome.kind === "completion" ? outcome.usage : (await collect(outcome)).end.usage);
      }
      expect(counted[0]).toMatchObject(expected);
      expect(counted[0]?.estimated).toBe("estimated" in expected ? true : undefined);
      expect(counted[1]).toEqual(counted[0]);
    });
  });

  test.each(["anthropic", "google"] as const)(
    "%s: a last event without its blank line is an end all the same",
    async (kind) => {
      const { answer } = cases.find((one) => one.kind === kind && Array.isArray(one.answer)) ?? { answer: [] };
      const lines = (answer as object[]).map((event) => `data: ${JSON.stringify(event)}`).join("\n\n");
      const asked = callOf({ messages: [{ role: "user", content: "x" }], stream: true });
      const ends = async (text: string) => {
        upstream.answer = (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
        return (await collect(await providers[kind].chat(asked, targetOf(kind, upstream, models[kind]), optionsOf())))
          .end;
      };
      expect(await ends(lines)).toMatchObject({ result: "completed" });
      expect(await ends(lines.slice(0, -1))).toMatchObject({ failure: { kind: "truncated" } });
    },
  );

  test.each([
    ["msg_1", { result: "completed" }],
    ["msg_2", { failure: { kind: "protocol" } }],
  ])("anthropic: a message that begins again within itself, as %s", async (id, end) => {
    const { answer } = cases.find((one) => one.kind === "anthropic" && Array.isArray(one.answer)) ?? { answer: [] };
    const [start, ...rest] = answer as { message?: object }[];
    const events = [start, { ...start, message: { ...start?.message, id } }, ...rest];
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    };
    const asked = callOf({ messages: [{ role: "user", content: "x" }], stream: true });
    const outcome = await providers.anthropic.chat(asked, targetOf("anthropic", upstream), optionsOf());
    expect(outcome.kind === "stream" ? (await collect(outcome)).end : outcome).toMatchObject(end);
  });

  test("why Claude refused is the refusal, whole and streamed", async () => {
    const stop_details = { type: "refusal", category: "cyber", explanation: "Blocked under the policy." };
    const of = (name: string) => cases.find((one) => one.kind === "anthropic" && one.name === name)?.answer;
    const whole = { ...of("refusal"), stop_details };
    const streamed = (of("streamed: refusal") as { delta?: object }[]).map((event) =>
      event.delta ? { ...event, delta: { ...event.delta, stop_details } } : event,
    );
    upstream.answer = (response, _request, body) => {
      const stream = body.includes('"stream":true');
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      response.end(
        stream ? streamed.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") : JSON.stringify(whole),
      );
    };
    const ask = (more: object) => {
      const call = callOf({ messages: [{ role: "user", content: "x" }], ...more });
      return providers.anthropic.chat(call, targetOf("anthropic", upstream), optionsOf());
    };
    const outcome = await ask({});
    const { choices } = JSON.parse(outcome.kind === "completion" ? outcome.body.toString() : "");
    const refusal = stop_details.explanation;
    expect(choices).toMatchObject([{ message: { content: "", refusal }, finish_reason: "content_filter" }]);
    const { events } = await collect(await ask({ stream: true }));
    for (const event of events) specification()?.chunk(event);
    expect(events).toContainEqual(
      expect.objectContaining({ choices: [expect.objectContaining({ delta: { refusal } })] }),
    );
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

  test("fewer choices of Gemini's than were asked for are a 400 that tells of them, charged for; a blocked prompt has all of them", async () => {
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 2 };
    const one = { candidates: [{ content: { parts: [{ text: "a" }] }, finishReason: "STOP" }], usageMetadata };
    const blocked = { promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 5 } };
    const asked = async (answer: object, stream: boolean, streams = false) => {
      upstream.answer = (response) =>
        void response.end(streams ? `data: ${JSON.stringify(answer)}\n\n` : JSON.stringify(answer));
      const call = callOf({ messages: [{ role: "user", content: "x" }], n: 2, stream });
      return providers.google.chat(call, targetOf("google", upstream), optionsOf());
    };
    const refused = { kind: "protocol", status: 400, type: "invalid_request_error", param: "n", upstreamStatus: 200 };
    for (const stream of [false, true]) {
      const whole = await asked(one, stream);
      expect(whole).toMatchObject({ kind: "failure", failure: refused, usage: { input: 5, output: 2 } });
      expect(upstream.requests.at(-1)?.path).toMatch(/:generateContent$/);
    }
    // A proxy that streams all the same has begun.
    const { end, done } = await collect(await asked(one, true, true));
    expect([done, end]).toMatchObject([false, { result: "failed", failure: refused, usage: { input: 5, output: 2 } }]);
    const none = await asked(blocked, false);
    if (none.kind !== "completion") throw new Error(JSON.stringify(none));
    expect(JSON.parse(none.body.toString()).choices.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
    const { events } = await collect(await asked(blocked, true, true));
    const finished = (events as { choices: { index: number; finish_reason: string | null }[] }[])
      .flatMap(({ choices }) => choices)
      .filter(({ finish_reason }) => finish_reason === "content_filter");
    expect(finished.map(({ index }) => index)).toEqual([0, 1]);
  });

  test("images that Gemini drew come along, drafts of its thoughts do not", async () => {
    const drawn = (data: string, more: object = {}) => ({ inlineData: { mimeType: "image/png", data }, ...more });
    const parts = [drawn("ZHJhZnQ=", { thought: true }), { text: "here" }, drawn("b25l"), drawn("dHdv")];
    const answer = {
      candidates: [{ content: { parts }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 1 },
    };
    const images = ["b25l", "dHdv"].map((data, index) => ({
      type: "image_url",
      image_url: { url: `data:image/png;base64,${data}` },
      index,
    }));
    for (const stream of [false, true]) {
      upstream.answer = (response) => {
        if (!stream) return void response.end(JSON.stringify(answer));
        response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${JSON.stringify(answer)}\n\n`);
      };
      const asked = callOf({ messages: [{ role: "user", content: "x" }], stream });
      const outcome = await providers.google.chat(asked, targetOf("google", upstream), optionsOf());
      if (outcome.kind === "completion") {
        const completion = JSON.parse(outcome.body.toString());
        specification()?.completion(completion);
        expect(completion.choices[0].message).toMatchObject({ content: "here", images });
      } else {
        const { events } = await collect(outcome);
        for (const event of events) specification()?.chunk(event);
        const deltas = (events as { choices: { delta: { images?: unknown[] } }[] }[]).flatMap(({ choices }) => choices);
        expect(deltas.flatMap(({ delta }) => delta.images ?? [])).toEqual(images);
      }
    }
  });
});
