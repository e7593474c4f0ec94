// The official client, told nothing but another base URL and token.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type App, createApp } from "#daemon/app.ts";
import { heardByClient } from "./said.ts";
import { specification } from "./specification.ts";

let app: App;
let client: OpenAI;
let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-openai-"));
  app = await createApp({ root, logLevel: "error" });
  const url = await app.listen();
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: app.credentials.gateway_token, maxRetries: 0 });
});

afterAll(async () => {
  await app.close();
  await rm(root, { recursive: true, force: true });
});

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Current weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", minLength: 2 }, days: { type: "integer", minimum: 1, maximum: 7 } },
      required: ["city", "days"],
      additionalProperties: false,
    },
  },
} as const;

describe("the openai client against the sandbox", () => {
  test("create repeats the last user message and counts tokens", async () => {
    const completion = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hello, wörld 🎉" },
      ],
    });
    expect(completion.choices[0]?.message.content).toBe("hello, wörld 🎉");
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    expect(completion.usage?.total_tokens).toBe(
      (completion.usage?.prompt_tokens ?? 0) + (completion.usage?.completion_tokens ?? 0),
    );
    expect(completion.usage).toHaveProperty("cost_usd");
    specification()?.completion(completion);
  });

  test("the same request has the same answer, another has another id", async () => {
    const ask = (content: string) =>
      client.chat.completions.create({ model: "sandbox/echo", messages: [{ role: "user", content }] });
    const [one, two, other] = await Promise.all([ask("same"), ask("same"), ask("other")]);
    expect(two).toEqual(one);
    expect(other.id).not.toBe(one.id);
  });

  test("stream gives the same text, and one usage chunk at the end when asked for", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "a longer answer, in pieces" }],
      stream: true,
      stream_options: { include_usage: true },
    });
    const { text, usages } = await heardByClient(stream);
    expect(text).toBe("a longer answer, in pieces");
    expect(usages).toHaveLength(1);
  });

  test("a forced tool is called with arguments that fit its schema, streamed alike", async () => {
    const request = {
      model: "sandbox/echo",
      messages: [{ role: "user", content: "Paris please" }],
      tools: [weather],
      tool_choice: { type: "function", function: { name: "get_weather" } },
    } as const;
    const completion = await client.chat.completions.create({
      ...request,
      messages: [...request.messages],
      tools: [weather],
    });
    const call = completion.choices[0]?.message.tool_calls?.[0];
    expect(completion.choices[0]?.finish_reason).toBe("tool_calls");
    expect(call?.type).toBe("function");
    const args = JSON.parse(call?.type === "function" ? call.function.arguments : "null");
    expect(z.strictObject({ city: z.string().min(2), days: z.int().min(1).max(7) }).parse(args)).toEqual(args);
    specification()?.completion(completion);

    const streamed = await client.chat.completions
      .stream({ ...request, messages: [...request.messages], tools: [weather] })
      .finalChatCompletion();
    expect(streamed.choices[0]?.message.tool_calls).toMatchObject([
      { id: call?.id, function: { name: "get_weather" } },
    ]);
    const streamedCall = streamed.choices[0]?.message.tool_calls?.[0];
    expect(JSON.parse(streamedCall?.type === "function" ? streamedCall.function.arguments : "")).toEqual(args);
  });

  test("json_schema is obeyed, through the client's own parser", async () => {
    const Label = z.object({
      label: z.enum(["bug", "question", "praise"]),
      confidence: z.number().min(0).max(1),
      tags: z.array(z.string()),
      due: z.union([z.string(), z.null()]),
    });
    const completion = await client.chat.completions.parse({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "it broke" }],
      response_format: zodResponseFormat(Label, "label"),
    });
    const parsed = completion.choices[0]?.message.parsed;
    expect(Label.parse(parsed)).toEqual(parsed);
  });

  test("n, stop, max_tokens and logprobs act as at a real model", async () => {
    const messages = [{ role: "user" as const, content: "one two STOP three" }];
    const model = "sandbox/echo";
    const stopped = await client.chat.completions.create({
      model,
      messages,
      stop: ["STOP"],
      n: 2,
      logprobs: true,
      top_logprobs: 2,
    });
    expect(stopped.choices.map((choice) => choice.message.content)).toEqual(["one two ", "one two "]);
    expect(stopped.choices[0]?.logprobs?.content?.map((entry) => entry.token).join("")).toBe("one two ");
    specification()?.completion(stopped);
    const cut = await client.chat.completions.create({ model, messages, max_tokens: 1 });
    expect(cut.choices[0]).toMatchObject({ message: { content: "one " }, finish_reason: "length" });
  });

  test("legacy functions answer with function_call", async () => {
    const completion = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "weather?" }],
      functions: [weather.function],
      function_call: { name: "get_weather" },
    });
    expect(completion.choices[0]?.finish_reason).toBe("function_call");
    expect(completion.choices[0]?.message.function_call?.name).toBe("get_weather");
    specification()?.completion(completion);
  });

  test("embeddings: deterministic unit vectors, base64 (the client's default) and float", async () => {
    const one = await client.embeddings.create({ model: "sandbox/embedding", input: ["a", "b"] });
    const two = await client.embeddings.create({
      model: "sandbox/embedding",
      input: "a",
      encoding_format: "float",
      dimensions: 256,
    });
    const first = one.data[0]?.embedding ?? [];
    expect(one.data).toHaveLength(2);
    expect(first).toEqual(two.data[0]?.embedding);
    expect(Math.hypot(...first)).toBeCloseTo(1, 5);
    specification()?.embeddings(two);
  });

  test("models lists sandbox/echo and retrieves it", async () => {
    const list = await client.models.list();
    expect(list.data.map((model) => model.id)).toContain("sandbox/echo");
    expect((await client.models.retrieve("sandbox/echo")).id).toBe("sandbox/echo");
    specification()?.models({ object: list.object, data: list.data });
  });

  test("errors are the client's own classes", async () => {
    const messages = [{ role: "user" as const, content: "x" }];
    await expect(client.chat.completions.create({ model: "sandbox/none", messages })).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
    });
    await expect(
      client.chat.completions.create({ model: "sandbox/echo", messages, temperature: 9 }),
    ).rejects.toMatchObject({ status: 400, param: "temperature", type: "invalid_request_error" });
    const stranger = new OpenAI({ baseURL: client.baseURL, apiKey: "wrong", maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });
});
