// Whatever is posted: no crash, no 5xx, every refusal in OpenAI's form. 800 bodies here, 10,000 in the deep run.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type App, createApp } from "#daemon/app.ts";
import { type Ecosystem, ecosystems, good } from "./good-answers.ts";
import { hostileBody } from "./hostile.ts";
import { upstreamOfFile } from "./upstream.ts";

const BODIES = process.env["MAGIC_TEST_DEEP"] ? 10_000 : 800;
const SEED = 7;
let app: App;
let root: string;
let pool: Pool;
const upstream = upstreamOfFile();
const models = [
  "sandbox/echo",
  "openai/m",
  "azure/m",
  "anthropic/claude-haiku-4-5",
  "google/gemini-2.5-pro",
  "bedrock/m",
];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-hostile-"));
  upstream.answer = (response, request, body) => {
    const path = request.url ?? "";
    const answer = good[kindOf(path)];
    if (!path.includes("stream") && JSON.parse(body).stream !== true) {
      return void response.writeHead(200, { "content-type": "application/json" }).end(answer.json);
    }
    response.writeHead(200, { "content-type": answer.contentType }).end(Buffer.concat([...answer.events]));
  };
  const keys = { api_key: "k", region: "us-east-1", access_key_id: "a", secret_access_key: "s" };
  const of = (kind: string) => {
    const { api_key, ...aws } = keys;
    const base_url = kind === "openai" ? `${upstream.url}/v1` : upstream.url;
    return kind === "bedrock" ? { ...aws, base_url } : { api_key, base_url };
  };
  const providers = { sandbox: { seed: 1 }, ...Object.fromEntries(ecosystems.map((kind) => [kind, of(kind)])) };
  const project = {
    version: 1,
    gateway: { providers, allow_unpriced: true, default: "sandbox/echo" },
    egress: { allow_private: [new URL(upstream.url).host] },
  };
  await writeFile(join(root, "magic.yaml"), JSON.stringify(project));
  app = await createApp({ root, logLevel: "error", env: { ...process.env, MAGIC_HOME: join(root, "home") } });
  pool = new Pool(await app.listen(), { connections: 16 });
});
afterAll(async () => {
  await pool.close();
  await app.close();
  await rm(root, { recursive: true, force: true });
});

function kindOf(path: string): Ecosystem {
  if (path.startsWith("/model/")) return "bedrock";
  if (path.includes("enerateContent")) return "google";
  return path === "/v1/messages" ? "anthropic" : "openai";
}

async function post(body: Buffer | string, path = "/v1/chat/completions", type = "application/json") {
  const headers = { "content-type": type, authorization: `Bearer ${app.credentials.gateway_token}` };
  const response = await pool.request({ method: "POST", path, headers, body });
  return { status: response.statusCode, text: await response.body.text() };
}

function expectRefusal({ status, text }: { status: number; text: string }): void {
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  const { error } = JSON.parse(text) as { error: Record<string, unknown> };
  expect(error).toMatchObject({ message: expect.any(String), type: expect.any(String) });
  expect(error).toHaveProperty("param");
  expect(error).toHaveProperty("code");
}

test(`${BODIES} generated bodies: an answer or a refusal, and the next request is served`, async () => {
  const statuses: Record<number, number> = {};
  for (let at = 0; at < BODIES; at += 16) {
    await Promise.all(
      Array.from({ length: 16 }, async (_, n) => {
        const body = hostileBody(SEED, at + n, models);
        const answer = await post(body);
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        try {
          if (answer.status !== 200) expectRefusal(answer);
        } catch (error) {
          throw new Error(
            `body ${at + n}: ${answer.status} ${answer.text.slice(0, 300)} for ${body.toString().slice(0, 2000)}`,
            {
              cause: error,
            },
          );
        }
      }),
    );
  }
  expect(statuses[200]).toBeGreaterThan(0);
  expect(statuses[400]).toBeGreaterThan(0);
  expect((await post('{"messages":[{"role":"user","content":"still here"}]}')).text).toContain("still here");
}, 600_000);

test("20 MB, deep nesting, millions of containers, bad UTF-8, NUL: refused or answered, never 5xx", async () => {
  const message = (content: string) => `{"messages":[{"role":"user","content":${content}}],"max_tokens":1}`;
  expect((await post(message(JSON.stringify("x".repeat(20 << 20))))).status).toBe(200);
  const many = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(5 << 20) }], n: 128 });
  expectRefusal(await post(many));
  expectRefusal(await post(message("[".repeat(10 << 20))));
  expectRefusal(await post(message(`[${"{},".repeat(3_000_000)}{}]`)));
  expectRefusal(await post(`{${Array.from({ length: 300_000 }, (_, at) => `"k${at}":1`).join()},"messages":[]}`));
  expectRefusal(await post(Buffer.from([...Buffer.from('{"model":"'), 0xc3, 0x28, ...Buffer.from('"}')])));
  expectRefusal(await post(Buffer.from(message('"a\u0000b"'))));
  expectRefusal(await post(message('"x"'), "/v1/chat/completions", "text/plain"));
  expect((await post(message('"a\\u0000b"'))).status).toBe(200);
}, 120_000);

test("members that clients send as null are as good as absent", async () => {
  const request = {
    messages: [{ role: "user", content: "x", name: null }],
    tools: [{ type: "function", function: { name: "f", description: null, parameters: null, strict: null } }],
    stop: null,
    seed: null,
    response_format: null,
    tool_choice: null,
    max_tokens: null,
  };
  for (const model of models) {
    const answer = await post(JSON.stringify({ model, ...request }));
    expect(`${model} ${answer.status} ${answer.status === 200 ? "" : answer.text}`).toBe(`${model} 200 `);
  }
});

test("embeddings refuse what is no input", async () => {
  for (const input of [null, "", [], [""], [[]], [1.5], [["a"]], {}, Array(2049).fill("a")]) {
    expectRefusal(await post(JSON.stringify({ model: "sandbox/embedding", input }), "/v1/embeddings"));
  }
  expectRefusal(await post('{"model":"sandbox/embedding","input":"x","dimensions":1000000}', "/v1/embeddings"));
});

test.each([
  ["messages[0].role", { messages: [{ role: "king", content: "x" }] }],
  ["messages[0].content", { messages: [{ role: "user" }] }],
  [
    "messages[1].tool_call_id",
    {
      messages: [
        { role: "user", content: "x" },
        { role: "tool", content: "x", tool_call_id: "a" },
      ],
    },
  ],
  ["temperature", { messages: [{ role: "user", content: "x" }], temperature: "hot" }],
  ["n", { messages: [{ role: "user", content: "x" }], n: 129 }],
  ["top_logprobs", { messages: [{ role: "user", content: "x" }], logprobs: true, top_logprobs: 21 }],
  ["tool_choice", { messages: [{ role: "user", content: "x" }], tool_choice: "required" }],
  ["stop", { messages: [{ role: "user", content: "x" }], stop: ["a", "b", "c", "d", "e"] }],
  ["max_tokens", { messages: [{ role: "user", content: "x" }], max_tokens: 0 }],
  ["audio", { messages: [{ role: "user", content: "x" }], audio: { voice: "alloy", format: "wav" } }],
  ["logit_bias[1]", { messages: [{ role: "user", content: "x" }], logit_bias: { "1": 101 } }],
  [
    "tools[0].function.name",
    { messages: [{ role: "user", content: "x" }], tools: [{ type: "function", function: { name: "a b" } }] },
  ],
  [
    "messages[0].content[0].image_url.url",
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "nowhere" } }] }] },
  ],
  ["top_k", { messages: [{ role: "user", content: "x" }], top_k: 5 }],
])("the parameter is named: %s", async (param, request) => {
  const answer = await post(JSON.stringify({ model: "sandbox/echo", ...request }));
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.text).error.param).toBe(param);
});
