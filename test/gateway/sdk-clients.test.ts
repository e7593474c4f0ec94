// The Vercel AI SDK and LangChain.js against the gateway, told nothing but another base URL and token.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { HumanMessage, SystemMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type App, createApp } from "#daemon/app.ts";

let app: App;
let root: string;
let baseURL: string;
let apiKey: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-sdk-"));
  app = await createApp({ root, logLevel: "error", env: { ...process.env, MAGIC_HOME: join(root, "home") } });
  baseURL = `${await app.listen()}/v1`;
  apiKey = app.credentials.gateway_token;
});
afterAll(async () => {
  await app.close();
  await rm(root, { recursive: true, force: true });
});

const City = z.object({ city: z.string().min(1), days: z.number().int().min(1).max(7) });
const Label = z.object({ label: z.enum(["bug", "praise"]), confidence: z.number().min(0).max(1) });

describe("the Vercel AI SDK", () => {
  const model = () => createOpenAI({ baseURL, apiKey }).chat("sandbox/echo");

  test("generateText and streamText", async () => {
    const whole = await generateText({ model: model(), prompt: "hello there" });
    expect(whole.text).toBe("hello there");
    expect(whole.usage.totalTokens).toBeGreaterThan(0);
    const streamed = streamText({ model: model(), prompt: "hello there, in pieces" });
    let text = "";
    for await (const piece of streamed.textStream) text += piece;
    expect(text).toBe("hello there, in pieces");
    expect((await streamed.usage).outputTokens).toBeGreaterThan(0);
    expect(await streamed.finishReason).toBe("stop");
  });

  test("a tool is called, its result goes back, and the loop ends in text", async () => {
    const asked: unknown[] = [];
    const weather = tool({
      description: "weather",
      inputSchema: City,
      execute: async (input) => {
        asked.push(input);
        return { sunny: true };
      },
    });
    const { text, steps } = await generateText({
      model: model(),
      prompt: "weather in Paris?",
      tools: { weather },
      stopWhen: stepCountIs(4),
    });
    expect(asked).toHaveLength(1);
    expect(City.parse(asked[0])).toEqual(asked[0]);
    expect(steps).toHaveLength(2);
    expect(text).toBe("weather in Paris?");
  });

  test("generateObject, embedMany, and an error", async () => {
    const { object } = await generateObject({ model: model(), schema: Label, prompt: "it broke" });
    expect(Label.parse(object)).toEqual(object);
    const { embeddings } = await embedMany({
      model: createOpenAI({ baseURL, apiKey }).embedding("sandbox/embedding"),
      values: ["a", "b"],
    });
    expect(embeddings).toHaveLength(2);
    const unknown = createOpenAI({ baseURL, apiKey }).chat("sandbox/none");
    await expect(generateText({ model: unknown, prompt: "x", maxRetries: 0 })).rejects.toMatchObject({
      statusCode: 404,
    });
  });
});

test("what the gateway does not have is said in the client's own form: the AI SDK's default API", async () => {
  const responses = createOpenAI({ baseURL, apiKey })("sandbox/echo");
  const asked = generateText({ model: responses, prompt: "x", maxRetries: 0 });
  await expect(asked).rejects.toMatchObject({
    statusCode: 404,
    message: expect.stringContaining("/v1/chat/completions"),
  });
});

describe("LangChain.js", () => {
  const model = (name = "sandbox/echo") =>
    new ChatOpenAI({ model: name, apiKey, configuration: { baseURL }, maxRetries: 0, streamUsage: true });

  test("invoke and stream", async () => {
    const answer = await model().invoke([new SystemMessage("be brief"), new HumanMessage("hello")]);
    expect(answer.content).toBe("hello");
    expect(answer).toMatchObject({ usage_metadata: { total_tokens: expect.any(Number) } });
    let text = "";
    for await (const piece of await model().stream("hello, in pieces")) text += piece.content;
    expect(text).toBe("hello, in pieces");
  });

  test("tools and structured output", async () => {
    const weather = langchainTool(async () => "sunny", { name: "weather", description: "weather", schema: City });
    const called = await model().bindTools([weather]).invoke("weather in Paris?");
    expect(called.tool_calls).toHaveLength(1);
    expect(City.parse(called.tool_calls?.[0]?.args)).toEqual(called.tool_calls?.[0]?.args);
    const label = await model().withStructuredOutput(Label, { name: "label", method: "jsonSchema" }).invoke("it broke");
    expect(Label.parse(label)).toEqual(label);
  });

  test("embeddings and errors", async () => {
    const embeddings = new OpenAIEmbeddings({ model: "sandbox/embedding", apiKey, configuration: { baseURL } });
    expect(await embeddings.embedDocuments(["a", "b"])).toHaveLength(2);
    await expect(model("sandbox/none").invoke("x")).rejects.toMatchObject({ status: 404 });
  });
});
