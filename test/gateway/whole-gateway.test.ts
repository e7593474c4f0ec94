// The five ecosystems through the whole daemon: magic.yaml, token, routing, egress guard, provider, answer; with the official client.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type App, createApp } from "#daemon/app.ts";
import { within } from "../patience.ts";
import { ecosystems, good, SAID } from "./good-answers.ts";
import { heardByClient } from "./said.ts";
import { specification } from "./specification.ts";
import { upstreamOfFile } from "./upstream.ts";

let app: App;
let root: string;
const upstream = upstreamOfFile();
let client: OpenAI;
let url: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-whole-"));
  const keys = { api_key: "sk-canary-0123456789abcdef" };
  const aws = { region: "us-east-1", access_key_id: "AKIAIOSFODNN7EXAMPLE", secret_access_key: "canary-secret-key" };
  const project = {
    version: 1,
    gateway: {
      allow_unpriced: true,
      providers: {
        openai: { ...keys, base_url: `${upstream.url}/v1` },
        azure: { ...keys, base_url: upstream.url },
        anthropic: { ...keys, base_url: upstream.url },
        google: { ...keys, base_url: upstream.url },
        bedrock: { ...aws, base_url: upstream.url },
        local: { type: "openai", base_url: `${upstream.url}/v1` },
        closed: { type: "openai", base_url: "http://127.0.0.1:9/v1" },
        sandbox: { seed: 1 },
      },
    },
    egress: { allow_private: [new URL(upstream.url).host] },
  };
  await writeFile(join(root, "magic.yaml"), JSON.stringify(project));
  app = await createApp({ root, logLevel: "error", env: { ...process.env, MAGIC_HOME: join(root, "home") } });
  url = await app.listen();
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: app.credentials.gateway_token, maxRetries: 0 });
});
afterAll(async () => {
  await app.close();
  await rm(root, { recursive: true, force: true });
});

const models: Record<string, string> = {
  openai: "openai/gpt-4o-mini",
  azure: "azure/my-deployment",
  anthropic: "anthropic/claude-haiku-4-5",
  google: "google/gemini-2.5-flash",
  bedrock: "bedrock/anthropic.claude-3-haiku-20240307-v1:0",
};
const messages = [{ role: "user" as const, content: "x" }];

describe.each(ecosystems)("%s", (kind) => {
  const model = models[kind] ?? "";

  test("a completion: valid, with its cost, the key only where it belongs", async () => {
    upstream.answer = (response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end(good[kind].json);
    const { data, response } = await client.chat.completions.create({ model, messages }).withResponse();
    expect(data.choices[0]?.message.content).toBe(SAID);
    expect(data.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 });
    expect(data.usage).toHaveProperty("cost_usd");
    specification()?.completion(data);
    expect(upstream.requests).toHaveLength(1);
    expect(JSON.stringify([...response.headers])).not.toContain("canary");
  });

  test("a stream: valid chunks, one usage chunk, [DONE]", async () => {
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": good[kind].contentType });
      for (const event of good[kind].events) response.write(event);
      response.end();
    };
    const stream = await client.chat.completions.create({
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const { text, usages } = await heardByClient(stream);
    expect(text).toBe(SAID);
    expect(usages).toMatchObject([{ prompt_tokens: 9, completion_tokens: 4 }]);
    expect(usages[0]).toHaveProperty("cost_usd");
  });

  test("a truncated stream is an error for the client, not an end", async () => {
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": good[kind].contentType });
      for (const event of good[kind].events.slice(0, 3)) response.write(event);
      response.end();
    };
    const read = async () => {
      for await (const _chunk of await client.chat.completions.create({ model, messages, stream: true }));
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  test("a client that leaves ends the upstream call within 250 ms", async () => {
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": good[kind].contentType });
      for (const event of good[kind].events.slice(0, 3)) response.write(event);
    };
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    const at = performance.now();
    stream.controller.abort();
    while (!upstream.requests[0]?.closed && performance.now() - at < within(1000))
      await new Promise((r) => setTimeout(r, 5));
    expect(performance.now() - at).toBeLessThan(within(250));
  });

  test("401 of the provider keeps its status and names no key", async () => {
    upstream.answer = (response) =>
      void response
        .writeHead(401, { "content-type": "application/json" })
        .end('{"error":{"message":"bad key sk-canary-0123456789abcdef"}}');
    const failing = client.chat.completions.create({ model, messages });
    await expect(failing).rejects.toMatchObject({ status: 401 });
    await expect(failing).rejects.not.toThrow(/canary/);
    expect(upstream.requests).toHaveLength(1);
  });
});

test("a compatible server on loopback costs nothing; embeddings go through it", async () => {
  upstream.answer = (response, request) => {
    response.setHeader("content-type", "application/json");
    if (request.url?.endsWith("/embeddings")) {
      const data = [{ object: "embedding", index: 0, embedding: [0.1, 0.2] }];
      return void response.end(
        JSON.stringify({ object: "list", data, model: "e", usage: { prompt_tokens: 3, total_tokens: 3 } }),
      );
    }
    response.end(good.openai.json);
  };
  const completion = await client.chat.completions.create({ model: "local/llama3", messages });
  expect(completion.usage).toMatchObject({ cost_usd: 0 });
  const embedding = await client.embeddings.create({ model: "local/e", input: "x", encoding_format: "float" });
  expect(embedding.data[0]?.embedding).toEqual([0.1, 0.2]);
  expect(JSON.parse(upstream.requests.at(-1)?.body ?? "")).toMatchObject({ model: "e", input: "x" });
});

test("embeddings of a provider whose wire has none are refused", async () => {
  for (const model of ["anthropic/claude-haiku-4-5", "google/gemini-2.5-flash"]) {
    await expect(client.embeddings.create({ model, input: "x" })).rejects.toMatchObject({ status: 400 });
  }
  expect(upstream.requests).toHaveLength(0);
});

test.each([
  [400, OpenAI.BadRequestError, 1],
  [401, OpenAI.AuthenticationError, 1],
  [403, OpenAI.PermissionDeniedError, 1],
  [404, OpenAI.NotFoundError, 1],
  [422, OpenAI.UnprocessableEntityError, 1],
  [429, OpenAI.RateLimitError, 2],
  [500, OpenAI.InternalServerError, 2],
] as const)(
  "status %i of the provider is the client's own error; what may pass it tries again itself",
  async (status, kind, tries) => {
    const retrying = client.withOptions({ maxRetries: 1 });
    upstream.answer = (response) => void response.writeHead(status, { "retry-after-ms": "1" }).end("{}");
    const failed = await retrying.chat.completions.create({ model: "local/m", messages }).catch((error) => error);
    expect(failed).toBeInstanceOf(kind);
    expect(upstream.requests).toHaveLength(tries);
  },
);

test("a used-up quota is not tried again: the client is told that it is of no use", async () => {
  const body = '{"error":{"message":"no money","type":"insufficient_quota","code":"insufficient_quota"}}';
  upstream.answer = (response) => void response.writeHead(429, { "retry-after": "1" }).end(body);
  const retrying = client.withOptions({ maxRetries: 2 });
  const failed = await retrying.chat.completions.create({ model: "local/m", messages }).catch((error) => error);
  expect(failed).toBeInstanceOf(OpenAI.RateLimitError);
  expect(failed.code).toBe("insufficient_quota");
  expect(failed.headers.get("retry-after")).toBeNull();
  expect(upstream.requests).toHaveLength(1);
});

test("a private address that nobody allowed is not reached", async () => {
  await expect(client.chat.completions.create({ model: "closed/m", messages })).rejects.toMatchObject({
    status: 403,
    code: "egress_blocked",
  });
});
