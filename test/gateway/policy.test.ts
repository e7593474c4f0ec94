// How often whom: attempts under every kind of failure and policy, counted by the upstream.
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { GatewayConfig, PolicyConfig } from "#contract/project-gateway.ts";
import { createBreakers } from "#daemon/gateway/routing/breaker.ts";
import { createMeasurements } from "#daemon/gateway/routing/measurements.ts";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { systemClock } from "#shared/clock.ts";
import { folderOfFile } from "#test/temporary.ts";
import { frame } from "./event-stream.ts";
import { completion, testGateway as newGateway, principal, stream, type TestGateway } from "./pipeline.ts";
import { error, type Upstream, upstreamOfFile } from "./upstream.ts";

const a = upstreamOfFile();
const b = upstreamOfFile();
let storage: Storage;
const folder = folderOfFile();
beforeAll(async () => {
  storage = await openStorage({ root: folder });
});
afterAll(() => storage.close());
const testGateway = (...[made, more]: Parameters<typeof newGateway>): Promise<TestGateway> =>
  newGateway(made, { storage, random: () => 0.1, ...more });
beforeEach(() => {
  b.answer = (response, _request, body) => good(response, body);
});

/** This machine may be busy. */
const patient = { timeout: 20_000 };
const provider = (upstream: Upstream) => ({ type: "openai" as const, base_url: `${upstream.url}/v1`, api_key: "k" });

function config(policy: Partial<PolicyConfig> = {}): GatewayConfig {
  return {
    providers: { a: provider(a), b: provider(b) },
    policies: { p: { candidates: ["a/m", "b/m"], retries: 2, timeout_ms: 2_000, ...policy } },
  };
}

function good(response: ServerResponse, body: string): void {
  const streamed = (JSON.parse(body) as { stream?: boolean }).stream === true;
  response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
  response.end(streamed ? stream() : completion());
}

const silent: Upstream["answer"] = () => {};

const failures: readonly [name: string, answer: Upstream["answer"], atA: number, atB: number, status: number][] = [
  ["429", error(429), 3, 1, 200],
  ["429 with a hint that fits", error(429, "x", { "retry-after-ms": "20" }), 3, 1, 200],
  ["429 with a hint that does not fit", error(429, "x", { "retry-after": "60" }), 1, 1, 200],
  ["429 insufficient_quota", error(429, "insufficient_quota"), 1, 1, 200],
  ["500", error(500), 3, 1, 200],
  ["503", error(503), 3, 1, 200],
  ["529", error(529), 3, 1, 200],
  ["502", error(502), 1, 1, 200],
  ["a time-out before the headers", silent, 1, 1, 200],
  ["a reset", (response) => void response.socket?.destroy(), 1, 1, 200],
  ["400", error(400), 1, 0, 400],
  ["401", error(401), 1, 0, 401],
  ["403", error(403), 1, 0, 403],
  ["404", error(404), 1, 0, 404],
];

describe.each([{ streamed: false }, { streamed: true }])("stream: $streamed", ({ streamed }) => {
  test.each(failures)("%s", async (_name, answer, atA, atB, status) => {
    a.answer = answer;
    const { chat } = await testGateway(config(answer === silent ? {} : { timeout_ms: 20_000 }));
    const answered = await chat({ model: "p", stream: streamed });
    expect([a.requests.length, b.requests.length, answered.status]).toEqual([atA, atB, status]);
    expect(answered.headers["x-magic-attempts"]).toBe(String(atA + atB));
    expect(answered.headers["x-magic-provider"]).toBe(atB > 0 ? "b" : "a");
  });
});

test("a stream that breaks before its first content goes to the next candidate; after it, to its end with an error", async () => {
  const { chat } = await testGateway(config());
  a.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\n\n");
    setTimeout(() => response.socket?.destroy(), 20);
  };
  const before = await chat({ model: "p", stream: true });
  expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
  expect(before.text.endsWith("data: [DONE]\n\n")).toBe(true);
  a.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`${stream().split("\n\n")[0]}\n\n`);
    setTimeout(() => response.socket?.destroy(), 20);
  };
  const after = await chat({ model: "p", stream: true });
  expect([a.requests.length, b.requests.length]).toEqual([2, 1]);
  expect(after.text).not.toContain("[DONE]");
  expect(after.text).toContain('data: {"error"');
  a.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${stream().split("\n\n")[0]}\n\ndata: {"error":{"message":"m","type":"server_error"}}\n\n`);
  };
  const together = await chat({ model: "p", stream: true });
  expect([a.requests.length, b.requests.length], "content and what breaks it in one read").toEqual([3, 1]);
  expect(together.status).toBe(200);
  expect(together.text.startsWith(stream().split("\n\n")[0] as string)).toBe(true);
  expect(together.text).toContain('data: {"error"');
});

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
test.each([
  ["openai", 2, event({ error: { message: "m", type: "server_error", code: null } })],
  ["openai", 2, event({ error: { message: "m", type: "InternalServerError", code: 500 } })],
  ["openai", 2, event({ error: { message: "m", code: 503 } })],
  ["openai", 1, event({ error: { message: "m", type: "server_error", code: 502 } })],
  ["openai", 1, event({ error: { message: "m" } })],
  ["anthropic", 2, event({ type: "error", error: { type: "api_error", message: "m" } })],
  ["anthropic", 2, event({ type: "error", error: { type: "overloaded_error", message: "m" } })],
  ["anthropic", 1, event({ type: "error", error: { type: "timeout_error", message: "m" } })],
  ["google", 2, event({ error: { code: 500, message: "m", status: "INTERNAL" } })],
  ["bedrock", 2, frame("internalServerException", '{"message":"m"}', "exception")],
  ["bedrock", 1, frame("modelStreamErrorException", '{"message":"m"}', "exception")],
] as const)(
  "an error in %s's stream before its content is tried as often as its status: %i",
  async (type, atA, body) => {
    a.answer = (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(body);
    const base_url = type === "openai" ? `${a.url}/v1` : a.url;
    const providers = { a: { type, base_url, api_key: "k" }, b: provider(b) };
    const { chat } = await testGateway({
      ...config({ retries: 1, timeout_ms: 20_000 }),
      providers,
      allow_unpriced: true,
    });
    const { status } = await chat({ model: "p", stream: true });
    expect([a.requests.length, b.requests.length, status]).toEqual([atA, 1, 200]);
  },
);

test("who is refused by all is told to come again when the first of them has room", async () => {
  const { chat } = await testGateway(config());
  let asked = 0;
  // What it said first is over by the time that it says more.
  a.answer = (response) => error(429, "x", { "retry-after-ms": asked++ === 0 ? "20" : "7000" })(response);
  b.answer = error(429, "x", { "retry-after": "3000" });
  const answered = await chat({ model: "p" });
  expect([answered.status, a.requests.length, b.requests.length]).toEqual([429, 2, 1]);
  expect(answered.headers["retry-after"]).toBe("7");
  a.answer = error(500);
  expect((await chat({ model: "p" })).headers["retry-after"]).toBe("3000");
  a.answer = error(429, "insufficient_quota", { "retry-after": "5" });
  expect((await chat({ model: "p" })).headers["retry-after"]).toBe("3000");
});

test("a pinned model is asked once", async () => {
  a.answer = error(503);
  const { chat } = await testGateway(config());
  const answered = await chat({ model: "a/m" });
  expect([answered.status, a.requests.length, b.requests.length]).toEqual([503, 1, 0]);
});

test("the total time ends a call whatever its candidates do", async () => {
  a.answer = () => {};
  b.answer = () => {};
  const { chat } = await testGateway(config({ timeout_ms: 20_000, total_timeout_ms: 200 }));
  const started = performance.now();
  const answered = await chat({ model: "p" });
  expect(answered.status).toBe(504);
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("a candidate that keeps failing is left alone for a while and then tried by one call", async () => {
  let now = 0;
  const clock = { now: () => Date.now(), monotonic: () => now };
  const { chat, metrics } = await testGateway(config({ retries: 0 }), {
    clock,
    breakers: { failures: 3, openMs: 1_000 },
  });
  a.answer = error(500);
  for (let i = 0; i < 6; i++) expect((await chat({ model: "p" })).status).toBe(200);
  expect(a.requests.length).toBe(3);
  expect((await metrics.render()).text).toContain('magic_gateway_breaker_state{candidate="a/m"} 2');
  now += 1_000;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  a.answer = async (response, _request, body) => {
    await held;
    good(response, body);
  };
  const trial = chat({ model: "p" });
  await expect.poll(() => a.requests.length, patient).toBe(4);
  await Promise.all([chat({ model: "p" }), chat({ model: "p" })]);
  expect(a.requests.length).toBe(4);
  release();
  expect((await trial).headers["x-magic-provider"]).toBe("a");
  await chat({ model: "p" });
  expect(a.requests.length).toBe(5);
});

test("models that clients invent fill neither the breakers nor the measurements", () => {
  const breakers = createBreakers(systemClock, { failures: 2 });
  const measurements = createMeasurements(systemClock);
  for (let i = 0; i < 20_000; i++) {
    breakers.failed(`a/invented-${i}`);
    const pace = measurements.of(`a/invented-${i}`, false);
    pace.begun(performance.now());
    pace.ended(performance.now(), performance.now(), null);
  }
  expect(breakers.states().length).toBeLessThanOrEqual(1_000);
  const measured = Array.from({ length: 20_000 }, (_, i) => measurements.latency(`a/invented-${i}`, false));
  expect(measured.filter((ms) => ms !== null).length).toBeLessThanOrEqual(10_000);
  for (let i = 0; i < 2; i++) breakers.failed("a/real");
  expect(breakers.state("a/real")).toBe("open");
});

test("a candidate without an alternative is called whatever its breaker says", async () => {
  a.answer = error(500);
  const { chat } = await testGateway(config(), { breakers: { failures: 2 } });
  for (let i = 0; i < 5; i++) expect((await chat({ model: "a/m" })).status).toBe(502);
  expect(a.requests.length).toBe(5);
});

test("a candidate that another call is trying is called where the budget covers no other one", async () => {
  let now = 0;
  const { chat } = await testGateway(
    {
      ...config({ retries: 0 }),
      providers: { a: { type: "openai", base_url: `${a.url}/v1` }, b: { type: "openai", base_url: `${b.url}/v1` } },
      prices: { "b/m": { input: 0, output: 1_000_000 } },
      budgets: [{ scope: "user", usd: 50, per: "day" }],
    },
    { clock: { now: () => Date.now(), monotonic: () => now }, breakers: { failures: 2, openMs: 1_000 } },
  );
  const ask = () => chat({ model: "p", max_tokens: 100, user: "u" });
  a.answer = error(500);
  for (let i = 0; i < 3; i++) expect((await ask()).status).toBe(502);
  now += 1_000;
  const held = Promise.withResolvers<void>();
  a.answer = async (response, _request, body) => {
    if (a.requests.length === 4) await held.promise;
    good(response, body);
  };
  const trial = ask();
  await expect.poll(() => a.requests.length, patient).toBe(4);
  expect((await ask()).status).toBe(200);
  held.resolve();
  expect((await trial).status).toBe(200);
  expect(b.requests.length).toBe(0);
});

test("of an embeddings request each text has to fit into a candidate's context, not all together", async () => {
  const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
  a.answer = (response) => void response.end(JSON.stringify({ object: "list", data, model: "m", usage: null }));
  const { chat } = await testGateway({
    providers: { openai: { api_key: "k", base_url: `${a.url}/v1` } },
    policies: { p: { candidates: ["openai/text-embedding-3-small"] } },
  });
  const embed = (input: unknown) => chat({ model: "p", input }, { operation: "embeddings" });
  expect((await embed(Array.from({ length: 100 }, () => "word ".repeat(160)))).status).toBe(200);
  for (const input of ["word ".repeat(8_000), ["word", "word ".repeat(8_000)]])
    await expect(embed(input)).rejects.toMatchObject({ extra: { param: "input", code: "context_length_exceeded" } });
});

test("weights are obeyed, the cheapest and the fastest are chosen, users stick", async () => {
  a.answer = (response, _request, body) => void setTimeout(() => good(response, body), 250);
  const two = (more: Partial<PolicyConfig>) => ({
    ...config(more),
    prices: { "a/m": { input: 1, output: 1 }, "b/m": { input: 2, output: 2 } },
  });
  const counts = async (more: Partial<PolicyConfig>, users: readonly string[]) => {
    const { chat } = await testGateway(two(more));
    a.requests.length = 0;
    b.requests.length = 0;
    for (const user of users) await chat({ model: "p", user });
    return [a.requests.length, b.requests.length];
  };
  const users = Array.from({ length: 30 }, (_, i) => `u${i}`);
  const weighted = await counts({ strategy: "weighted", candidates: [{ model: "a/m", weight: 0 }, "b/m"] }, users);
  expect(weighted).toEqual([0, 30]);
  expect(await counts({ strategy: "cheapest", candidates: ["b/m", "a/m"] }, ["x"])).toEqual([1, 0]);
  expect(await counts({ strategy: "fastest" }, users.slice(0, 10))).toEqual([1, 9]);
  a.answer = (response, _request, body) => good(response, body);
  const sticky = await counts({ strategy: "sticky" }, users);
  expect(sticky[0]).toBeGreaterThan(4);
  expect(sticky[1]).toBeGreaterThan(4);
  const once = await counts(
    { strategy: "sticky" },
    Array.from({ length: 6 }, () => "same"),
  );
  expect(once.toSorted((x, y) => x - y)).toEqual([0, 6]);
});

test("denials name the rule and what to change; nobody is called", async () => {
  const { chat } = await testGateway({
    ...config(),
    models: { allow: ["a/*", "sandbox/*"], deny: ["a/secret*"] },
  });
  const refusal = async (body: object, who = principal()) =>
    (await chat(body, { principal: who }).catch((caught: unknown) => caught)) as { code: string; message: string };
  expect(await refusal({ model: "b/m" })).toMatchObject({
    code: "model_not_allowed",
    message: expect.stringMatching(/gateway\.models\.allow.*add "b\/m"/),
  });
  expect((await refusal({ model: "a/secret-1" })).message).toContain('"a/secret*" under gateway.models.deny');
  const live = await refusal({ model: "sandbox/echo" });
  expect([live.code, live.message]).toEqual(["model_not_allowed", expect.stringContaining("magic token create")]);
  const sandbox = principal({ environment: "sandbox" });
  expect((await refusal({ model: "a/m" }, sandbox)).code).toBe("model_not_allowed");
  const narrow = principal({}, { models: ["a/other"] });
  expect((await refusal({ model: "a/m" }, narrow)).message).toContain("--models");
  expect((await refusal({ model: "nobody/m" })).code).toBe("model_not_found");
  expect(a.requests.length + b.requests.length).toBe(0);
});

test("what no call would do, no explanation says: a request that is none, a model that the sandbox lacks", async () => {
  const { chat, gateway } = await testGateway({
    ...config(),
    policies: { p: { candidates: ["sandbox/nothing", "sandbox/echo"] } },
  });
  const sandbox = principal({ environment: "sandbox" });
  const messages = [{ role: "user", content: "x" }];
  const explain = (body: object) =>
    gateway.explain({ body: { messages, ...body }, principal: sandbox, controller: null });
  for (const wrong of [{ n: 0 }, { max_tokens: -1 }, { user: 5 }, { stream: "yes" }, { messages: [5] }]) {
    const body = { model: "sandbox/echo", ...wrong };
    const { message } = (await chat(body, { principal: sandbox }).catch((caught: unknown) => caught)) as Error;
    await expect(explain(body)).rejects.toThrow(message);
  }
  expect((await explain({ model: "sandbox/echo", messages: [] })).decision?.model).toBe("sandbox/echo");
  const { decision, candidates } = await explain({ model: "sandbox/nothing" });
  expect([decision, candidates[0]?.rule]).toEqual([null, "unknown_model"]);
  await expect(chat({ model: "sandbox/nothing" }, { principal: sandbox })).rejects.toMatchObject({
    code: "model_not_found",
    message: expect.stringContaining("there are sandbox/echo"),
  });
  expect((await explain({ model: "p" })).decision?.model).toBe("sandbox/echo");
  expect((await chat({ model: "p" }, { principal: sandbox })).headers["x-magic-model"]).toBe("echo");
});

test("what a request without messages asks for keeps out who does not have it, as it would with some", async () => {
  const { gateway } = await testGateway({
    providers: { anthropic: { api_key: "k", base_url: a.url }, a: provider(a) },
    policies: { p: { candidates: ["anthropic/claude-haiku-4-5", "a/m"] } },
  });
  const explain = (body: object) =>
    gateway.explain({ body: { model: "p", ...body }, principal: principal(), controller: null });
  for (const messages of [undefined, [], [{ role: "user", content: "x" }]]) {
    const { decision, candidates } = await explain({ seed: 1, messages });
    expect(decision?.model).toBe("a/m");
    expect(candidates[1]).toMatchObject({ model: "anthropic/claude-haiku-4-5", rule: "unsupported" });
  }
  expect((await explain({ messages: [] })).prompt_tokens).toBe((await explain({})).prompt_tokens);
  await expect(explain({ messages: "x" })).rejects.toThrow("'messages' must be an array");
});

test("a body that its first provider refuses as invalid goes nowhere, and one that the second refuses goes to the first alone", async () => {
  const { chat, gateway } = await testGateway({
    providers: { anthropic: { api_key: "k", base_url: a.url }, b: provider(b) },
    policies: {
      p: { candidates: ["anthropic/claude-haiku-4-5", "b/m"] },
      q: { candidates: ["b/m", "anthropic/claude-haiku-4-5"] },
    },
  });
  const invalid = { messages: [{ role: "user", content: 7 }] };
  const explain = (model: string, principalOf = principal()) =>
    gateway.explain({ body: { model, ...invalid }, principal: principalOf, controller: null });
  for (const model of ["p", "anthropic/claude-haiku-4-5"]) {
    const { decision, candidates } = await explain(model);
    expect(decision).toBe(null);
    const said = await chat({ model, ...invalid });
    expect([said.status, said.json]).toMatchObject([400, { error: { message: candidates[0]?.reason } }]);
    expect(candidates.every(({ rule }) => rule === "invalid")).toBe(true);
  }
  const { decision, candidates } = await explain("q");
  expect(decision?.model).toBe("b/m");
  expect(candidates.map(({ rank, rule }) => [rank, rule])).toEqual([
    [1, null],
    [null, "invalid"],
  ]);
  expect((await explain("sandbox/echo", principal({ environment: "sandbox" }))).decision).toBe(null);
});

test("what only the translation for a provider finds is explained as the call would be refused, and no image is fetched for it", async () => {
  const { chat, gateway } = await testGateway({
    providers: {
      anthropic: { api_key: "k", base_url: a.url },
      google: { api_key: "k", base_url: a.url },
      bedrock: { api_key: "k", region: "us-east-1", base_url: a.url },
    },
  });
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  const file = (file_data: string) => ({ type: "file", file: { filename: "x", file_data } });
  const models = ["anthropic/claude-haiku-4-5", "google/gemini-2.5-flash", "bedrock/amazon.nova-lite-v1:0"];
  const refused = [
    image("data:image/png,raw"),
    image(`data:image/tiff;base64,${Buffer.from("II*").toString("base64")}`),
    image("ftp://example.com/x.png"),
    file("data:application/zip;base64,UEsDBA=="),
    { type: "text", text: " " },
  ];
  let refusals = 0;
  for (const model of models)
    for (const part of refused) {
      const body = { model, messages: [{ role: "user", content: [part] }] };
      const { decision, candidates } = await gateway.explain({ body, principal: principal(), controller: null });
      a.answer = (response) => void response.writeHead(500).end("{}");
      const { status, json } = await chat(body);
      const said = status === 400 ? (json["error"] as { message: string }).message : null;
      if (said) refusals++;
      expect([model, part, decision && null, candidates[0]?.reason]).toEqual([model, part, null, said]);
      expect(decision === null).toBe(said !== null);
    }
  expect(refusals).toBeGreaterThan(10);
  a.requests.length = 0;
  const body = { model: models[2], messages: [{ role: "user", content: [image(`${a.url}/x.png`)] }] };
  const { decision } = await gateway.explain({ body, principal: principal(), controller: null });
  expect([decision?.model, a.requests]).toEqual([models[2], []]);
  expect(
    (await gateway.explain({ body: { model: models[0] }, principal: principal(), controller: null })).decision,
  ).not.toBe(null);
});

test("a candidate that is no provider's model says why: several serve it, it is a policy, its provider is not configured", async () => {
  const { chat } = await testGateway({
    providers: { openai: { api_key: "k", base_url: a.url }, azure: { api_key: "k", base_url: a.url } },
    policies: { q: { candidates: ["openai/gpt-4o"] }, p: { candidates: ["gpt-4o", "q", "nope/x"] } },
  });
  const told = await chat({ model: "p" }).catch((caught: unknown) => caught);
  expect(told).toMatchObject({ code: "provider_not_configured" });
  for (const why of [
    'several providers serve "gpt-4o": say which with openai/gpt-4o, azure/gpt-4o;',
    "q is a policy, and a policy's candidates are models;",
    "nope/x is of no provider under gateway.providers.",
  ])
    expect((told as Error).message).toContain(why);
});

test("every attempt of a route has a rank of its own, also where a policy names a model twice", async () => {
  const { gateway } = await testGateway({
    ...config(),
    policies: { twice: { candidates: ["a/m", "b/m", "a/m"] }, bare: { candidates: ["a/m", "echo"] } },
  });
  const tried = async (model: string, who = principal()) => {
    const body = { model, messages: [{ role: "user", content: "x" }] };
    const { candidates } = await gateway.explain({ body, principal: who, controller: null });
    return candidates.filter(({ eligible }) => eligible).map(({ rank, model: name }) => `${rank} ${name}`);
  };
  expect(await tried("twice")).toEqual(["1 a/m", "2 b/m", "3 a/m"]);
  // A bare id of the sandbox's is a candidate of the sandbox's: nothing has to stand in.
  expect(await tried("bare", principal({ environment: "sandbox" }))).toEqual(["1 sandbox/echo"]);
});

test("a model's name leads to no other model than the one that the lists were asked about", async () => {
  const { chat } = await testGateway({
    providers: { google: { api_key: "k", base_url: a.url, models: ["*"] }, a: provider(a) },
    models: { deny: ["google/gemini-2.5-pro", "a/secret*"] },
    allow_unpriced: true,
  });
  const flash = { principal: principal({}, { models: ["google/gemini-2.5-flash*"] }) };
  const asked = async (model: string, who: object = {}) => {
    const refused = await chat({ model }, who).catch((caught: unknown) => caught);
    return (refused as { code?: string }).code;
  };
  expect(await asked("google/gemini-2.5-flash/../models/gemini-2.5-pro", flash)).toBe("invalid_request");
  for (const model of ["google/x/../models/gemini-2.5-pro", "google/../gemini-2.5-pro", "google/./gemini-2.5-pro"])
    expect(await asked(model)).toBe("invalid_request");
  const others = [
    "google/models/gemini-2.5-pro",
    "google//models/gemini-2.5-pro",
    "models/gemini-2.5-pro",
    "a/SECRET-1",
  ];
  for (const model of others) expect(await asked(model)).toBe("model_not_allowed");
  expect(a.requests.length).toBe(0);
  await chat({ model: "google/models/gemini-2.5-flash" }, flash);
  await chat({ model: "google/tunedModels/a..b" });
  expect(a.requests.map(({ path }) => path)).toEqual([
    "/v1beta/models/gemini-2.5-flash:generateContent",
    "/v1beta/tunedModels/a..b:generateContent",
  ]);
  // Words are a name of GPT4All's; a space that a server may pass over is none.
  for (const model of ["a/ secret-1", " a/secret-1", "a/secret-1 ", "a/x /secret-1", "a/x\ty", "a/é"])
    expect(await asked(model), model).toBe("invalid_request");
  a.answer = (response, _request, body) => good(response, body);
  expect((await chat({ model: "a/Llama 3 8B Instruct" })).status).toBe(200);
  expect(JSON.parse(a.requests.at(-1)?.body ?? "")).toMatchObject({ model: "Llama 3 8B Instruct" });
});

test("the list has what a call would be served: by the very names that a token lists", async () => {
  a.answer = (response, _request, body) => good(response, body);
  const { gateway, chat } = await testGateway({
    ...config(),
    models: { aliases: { fast: "a/m", usual: "p", short: "m2", nowhere: "x/y" } },
    policies: { auto: { candidates: ["a/m"] }, p: { candidates: ["a/m", "b/m"] } },
    providers: { a: { ...provider(a), models: ["m", "m2"] }, b: provider(b) },
  });
  const cases: [string[] | null, string[]][] = [
    [
      ["fast", "p"],
      ["fast", "p"],
    ],
    [
      ["short", "usual"],
      ["short", "usual"],
    ],
    [["a/m"], ["a/m", "fast", "p", "usual"]],
    [null, ["a/m", "a/m2", "b/m", "fast", "p", "short", "usual"]],
  ];
  for (const [models, expected] of cases) {
    const who = principal({}, { models });
    const listed = (await gateway.models(who)).filter(({ id }) => id !== "auto");
    expect(listed.flatMap(({ id, allowed }) => (allowed ? [id] : [])).sort()).toEqual(expected);
    for (const entry of listed) expect(await gateway.model(who, entry.id)).toEqual(entry);
    const others = ["m2", "policy:p", "b/other", "m3", "c/m", "sandbox/none", "a/../m", "policy:none", ""];
    const named = await Promise.all(others.map(async (id) => ({ id, ...(await gateway.model(who, id)) })));
    for (const { id, allowed = false } of [...listed, ...named]) {
      const served = await chat({ model: id }, { principal: who }).then(
        ({ status }) => status === 200,
        () => false,
      );
      expect([id, served]).toEqual([id, allowed]);
    }
  }
});

test("a sandbox credential is served by the sandbox alone, also where a policy names live models only", async () => {
  const { chat } = await testGateway(config());
  const who = { principal: principal({ environment: "sandbox" }) };
  expect((await chat({ model: "p" }, who)).headers["x-magic-provider"]).toBe("sandbox");
  expect((await chat({ model: "sandbox/echo" }, who)).status).toBe(200);
  expect((await chat({}, who)).status).toBe(200);
  expect(a.requests.length + b.requests.length).toBe(0);
});

test("a bare id goes to the one provider that serves it, and is refused where two do", async () => {
  const own = (models: string[]) => ({ ...provider(a), models });
  const { chat } = await testGateway({
    providers: { a: own(["llama-*"]), b: { ...provider(b), models: ["qwen", "both"] }, c: own(["both"]) },
    models: { aliases: { fast: "b/qwen", faster: "fast", round: "round2", round2: "round" } },
  });
  const served = async (model: string, who = principal()) =>
    (await chat({ model }, { principal: who })).headers["x-magic-provider"];
  expect(await served("llama-3")).toBe("a");
  expect(await served("qwen")).toBe("b");
  expect(await served("faster")).toBe("b");
  expect(await served("echo", principal({ environment: "sandbox" }))).toBe("sandbox");
  for (const [model, message] of [
    ["both", /say which with b\/both, c\/both/],
    ["round", /circle/],
    ["unheard", /There is no model "unheard"/],
    ["anthropic/x", /not configured: add it under gateway\.providers/],
    ["policy:none", /There is no policy "none"/],
  ] as const)
    await expect(chat({ model })).rejects.toThrow(message);
});

test("Claude is Anthropic's, although the price list has it at Google and Azure too", async () => {
  const vendor = { base_url: a.url, api_key: "k" };
  const { chat, gateway } = await testGateway({ providers: { anthropic: vendor, google: vendor, azure: vendor } });
  a.answer = (response) => void response.writeHead(400).end("{}");
  expect((await chat({ model: "claude-haiku-4-5" })).headers["x-magic-provider"]).toBe("anthropic");
  const listed = (await gateway.models(principal())).map(({ id }) => id);
  expect(listed.filter((id) => id.includes("claude") && !id.startsWith("anthropic/"))).toEqual([]);
});

test("a candidate may be named as a request names a model: by an alias of an alias, or by a bare id", async () => {
  a.answer = b.answer = (response, _request, body) => good(response, body);
  const { chat } = await testGateway({
    providers: { a: { ...provider(a), models: ["m"] }, b: { ...provider(b), models: ["n"] } },
    models: { aliases: { fast: "quick", quick: "b/n" } },
    policies: {
      chained: { candidates: ["fast"] },
      bare: { candidates: ["m"] },
      none: { candidates: ["neither", "n"] },
    },
  });
  const served = async (model: string) => (await chat({ model })).headers["x-magic-provider"];
  expect(await Promise.all(["chained", "bare", "none"].map(served))).toEqual(["b", "a", "b"]);
});

test("the auto that is not written asks a server of one's own for what it says it has, and nobody for another's models", async () => {
  a.answer = (response, _request, body) => good(response, body);
  const told = await testGateway({ providers: { a: { ...provider(a), models: ["x-*", "llama3"] } } });
  expect((await told.chat({})).headers["x-magic-model"]).toBe("llama3");
  const silent = await testGateway({ providers: { openai: provider(b), a: provider(a) } });
  expect((await silent.chat({ model: "gpt-4o-mini" })).headers["x-magic-provider"]).toBe("openai");
});

test("a live credential never falls back to the sandbox; the local token may use both", async () => {
  a.answer = error(500);
  b.answer = error(500);
  const policy = config({ candidates: ["a/m", "sandbox/echo"], retries: 0 });
  const { chat } = await testGateway(policy);
  expect((await chat({ model: "p" })).status).toBe(502);
  const both = principal({ environments: ["sandbox", "live"] });
  expect((await chat({ model: "p" }, { principal: both })).headers["x-magic-provider"]).toBe("sandbox");
});

test("a new configuration holds from the next call on, and a call under way keeps the old one", async () => {
  const { chat, gateway } = await testGateway(config());
  let answer = () => {};
  a.answer = (response, _request, body) => {
    answer = () => good(response, body);
  };
  const before = chat({ model: "a/m" });
  await expect.poll(() => a.requests.length, patient).toBe(1);
  gateway.reconfigure({ providers: { b: provider(b) } });
  answer();
  expect((await before).status).toBe(200);
  await expect(chat({ model: "a/m" })).rejects.toMatchObject({ code: "model_not_found" });
  expect((await chat({ model: "m" })).headers["x-magic-provider"]).toBe("b");
});

test("headers of magic.yaml go with every request, and cannot replace the credential", async () => {
  a.answer = (response, _request, body) => good(response, body);
  const { chat } = await testGateway({
    providers: {
      a: {
        ...provider(a),
        headers: { "X-Team": "blue", Authorization: "mine" },
        organization: "org-1",
        project: "p-1",
      },
    },
  });
  await chat({ model: "a/m" });
  expect(a.requests[0]?.headers).toMatchObject({
    "x-team": "blue",
    authorization: "Bearer k",
    "openai-organization": "org-1",
    "openai-project": "p-1",
  });
});

test("a policy passes over a Claude that takes a temperature or a top_p; who asks for it by name is its vendor's affair", async () => {
  const claude = "anthropic/claude-haiku-4-5";
  const providers = { anthropic: { api_key: "k" }, openai: { api_key: "k" } };
  const { gateway } = await testGateway({ providers, policies: { p: { candidates: [claude, "openai/gpt-4o-mini"] } } });
  const decided = async (model: string, more = {}) => {
    const body = { model, messages: [{ role: "user", content: "x" }], temperature: 0.5, top_p: 0.5, ...more };
    return (await gateway.explain({ body, principal: principal(), controller: null })).decision?.model;
  };
  expect(await decided("p")).toBe("openai/gpt-4o-mini");
  expect(await decided("p", { top_p: 1 })).toBe(claude);
  expect(await decided("p", { drop_unsupported: true })).toBe(claude);
  expect(await decided(claude)).toBe(claude);
});
