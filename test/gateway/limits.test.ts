// Limits on a clock that the test holds, the traces that are exported, and what the metrics say.
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { createLimits } from "#daemon/gateway/limits/limits.ts";
import { createWindow } from "#daemon/gateway/limits/window.ts";
import { type otlpDocument, otlpExporter, otlpHeaders } from "#daemon/telemetry/otlp.ts";
import { sortSpans } from "#daemon/telemetry/span-order.ts";
import { createTracer, type SpanRecord } from "#daemon/telemetry/trace.ts";
import { listen } from "#test/listen.ts";
import { callOf, completion, principal, stream, testGateway } from "./pipeline.ts";
import { upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();

function heldClock() {
  let ms = 1_000_000;
  const advance = (by: number) => {
    ms += by;
  };
  return { now: () => ms, monotonic: () => ms, advance };
}

test("in no minute are there more than the limit, whatever the pattern", () => {
  const clock = heldClock();
  const limits = createLimits(clock);
  const admitted: number[] = [];
  let seed = 7;
  for (let i = 0; i < 5_000; i++) {
    seed = (Math.imul(seed, 48_271) >>> 0) % 2_147_483_647;
    clock.advance(seed % 400);
    try {
      limits.take("t", { requests_per_minute: 50 }, 0).release(0);
      admitted.push(clock.monotonic());
    } catch {}
  }
  for (const [index, at] of admitted.entries())
    expect((admitted[index + 50] ?? Infinity) - at).toBeGreaterThanOrEqual(60_000);
  expect(admitted.length).toBeGreaterThan(((5_000 * 200) / 61_000) * 50 * 0.9);
});

test("after the time that Retry-After names a call is admitted, and not a second before", () => {
  const clock = heldClock();
  const limits = createLimits(clock);
  const take = () => limits.take("t", { requests_per_minute: 3 }, 0);
  for (let i = 0; i < 3; i++) {
    take();
    clock.advance(7_300);
  }
  let wait = 0;
  try {
    take();
  } catch (error) {
    wait = (error as { retryAfterS: number }).retryAfterS;
  }
  expect(wait).toBeGreaterThan(0);
  clock.advance(wait * 1000 - 1_500);
  expect(take).toThrow(/3 requests per minute/);
  clock.advance(1_500);
  expect(take).not.toThrow();
});

test("a refusal says what is left, and nobody waits longer than a minute", () => {
  const clock = heldClock();
  clock.advance(900);
  const limits = createLimits(clock);
  const take = () => limits.take("t", { requests_per_minute: 2, tokens_per_minute: 100 }, 30);
  take();
  take();
  clock.advance(200);
  let error: { retryAfterS: number; headers: object } | undefined;
  try {
    take();
  } catch (thrown) {
    error = thrown as typeof error;
  }
  expect(error).toMatchObject({
    retryAfterS: 60,
    headers: {
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-remaining-tokens": "40",
    },
  });
  clock.advance(59_799);
  expect(take).toThrow();
  clock.advance(1);
  expect(take).not.toThrow();
});

test("tokens are reserved before, corrected after, and calls at once give their place back; callers do not share", () => {
  const clock = heldClock();
  const limits = createLimits(clock);
  const config = { tokens_per_minute: 1_000, concurrent: 2 };
  const first = limits.take("a", config, 600);
  expect(() => limits.take("a", config, 600)).toThrow(/tokens per minute.*400 are left/);
  limits.take("b", config, 600);
  first.release(100);
  first.release(100);
  const second = limits.take("a", config, 600);
  limits.take("a", config, 100);
  expect(() => limits.take("a", config, 1)).toThrow(/calls at once/);
  second.release(600);
  expect(() => limits.take("a", config, 1)).not.toThrow();
});

test("what a long call reserved too much is given back when it ends, what it used more counts from then on", () => {
  const clock = heldClock();
  const limits = createLimits(clock);
  const config = { tokens_per_minute: 1_000 };
  const long = limits.take("a", config, 900);
  clock.advance(10_000);
  expect(() => limits.take("a", config, 500)).toThrow(/100 are left/);
  long.release(50);
  const more = limits.take("a", config, 500);
  clock.advance(30_000);
  more.release(950);
  expect(() => limits.take("a", config, 1)).toThrow(/0 are left/);
  // The first call has left the window, the second's reservation too; what it used beyond came 30 s later.
  clock.advance(31_000);
  expect(() => limits.take("a", config, 551)).toThrow(/550 are left/);
  const late = limits.take("a", config, 550);
  clock.advance(120_000);
  late.release(0);
  expect(() => limits.take("a", config, 1_000)).not.toThrow();
});

test("a window forgets second by second, also after a long pause and a correction below nothing", () => {
  const clock = heldClock();
  const window = createWindow(clock);
  window.add(5);
  clock.advance(30_000);
  window.add(7);
  expect(window.sum()).toBe(12);
  clock.advance(31_000);
  expect(window.sum()).toBe(7);
  window.correct(window.add(1), -100);
  expect(window.sum()).toBe(7);
  clock.advance(10 * 3_600_000);
  expect(window.sum()).toBe(0);
});

test("whoever has left before the dispatch keeps no place, although nobody reads the stream", async () => {
  const { gateway, chat } = await testGateway({ providers: { sandbox: {} }, limits: { concurrent: 1 } });
  const own = principal({ environment: "sandbox" });
  const left = { principal: own, signal: AbortSignal.abort() };
  const messages = [{ role: "user", content: "hi" }];
  expect((await gateway.complete(callOf({ model: "sandbox/echo", stream: true, messages }, left))).status).toBe(499);
  expect((await chat({ model: "sandbox/echo" }, { principal: own })).status).toBe(200);
});

test("who reads nothing of a stream keeps his place no longer than the call may last", async () => {
  const { gateway, chat } = await testGateway({
    providers: { sandbox: {} },
    policies: { p: { candidates: ["sandbox/echo"], total_timeout_ms: 50 } },
    limits: { concurrent: 1 },
  });
  const own = principal({ environment: "sandbox" });
  const messages = [{ role: "user", content: "hi" }];
  const { stream } = await gateway.complete(callOf({ model: "p", stream: true, messages }, { principal: own }));
  await expect(chat({ model: "p" }, { principal: own })).rejects.toMatchObject({ code: "rate_limited" });
  // The event that says that its time is up is written as well.
  await stream?.pipe({ write: () => false, drained: () => new Promise(() => {}) });
  expect((await chat({ model: "p" }, { principal: own })).status).toBe(200);
});

// Of a call people are told when its answer has left.
const told = () => new Promise((resolve) => setImmediate(resolve));

test("metrics tell calls, tokens, cost, attempts and refusals", async () => {
  upstream.answer = (response) => void response.end(completion(10, 5));
  const { chat, metrics } = await testGateway({
    providers: { own: { type: "openai", base_url: `${upstream.url}/v1` } },
    prices: { "own/m": { input: 1, output: 2 } },
  });
  await chat({ model: "own/m" });
  await chat({ model: "nobody/m" }).catch(() => undefined);
  await told();
  const { text } = await metrics.render();
  expect(text).toContain('magic_gateway_requests_total{provider="own",model="m",outcome="completed"} 1');
  expect(text).toContain('magic_gateway_tokens_total{provider="own",model="m",direction="input"} 10');
  expect(text).toContain('magic_gateway_cost_usd_total{provider="own",model="m"} 0.00002');
  expect(text).toContain('magic_gateway_attempts_total{provider="own",model="m"} 1');
  expect(text).toContain('magic_gateway_refusals_total{code="model_not_found"} 1');
  expect(text).toContain("magic_gateway_overhead_seconds_count 1");
});

test("metrics count each attempt where it was made, and what a failed one was charged, as the ledger does", async () => {
  upstream.answer = (response, _request, body) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const broken = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } })}\n\n`;
    response.end(body.includes('"a"') ? `${broken}data: {"error":{"message":"broken"}}\n\n` : stream(10, 5));
  };
  const { chat, gateway, metrics } = await testGateway({
    providers: { own: { type: "openai", base_url: `${upstream.url}/v1` } },
    prices: { "own/*": { input: 1, output: 2 } },
    policies: { p: { candidates: ["own/a", "own/b"] } },
  });
  expect((await chat({ model: "p", stream: true })).status).toBe(200);
  await told();
  const { text } = await metrics.render();
  for (const [model, usd, tokens] of [
    ["a", "0.000011", 7],
    ["b", "0.00002", 10],
  ]) {
    expect(text).toContain(`magic_gateway_attempts_total{provider="own",model="${model}"} 1`);
    expect(text).toContain(`magic_gateway_cost_usd_total{provider="own",model="${model}"} ${usd}`);
    expect(text).toContain(`magic_gateway_tokens_total{provider="own",model="${model}",direction="input"} ${tokens}`);
  }
  expect(await gateway.usage({ by: "model" })).toMatchObject([{ cost_pico: "20000000" }, { cost_pico: "11000000" }]);
});

test("spans go to a collector as OTLP, parents before children", async () => {
  const bodies: { path: string; headers: Record<string, unknown>; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += String(part);
    bodies.push({ path: request.url ?? "", headers: request.headers, body });
    response.end("{}");
  });
  const { origin, close } = await listen(server);
  onTestFinished(close);
  const endpoint = `${origin}/`;
  const spans: SpanRecord[] = [];
  const tracer = createTracer();
  tracer.onBatch(async (batch) => void spans.push(...batch.map((span) => span.record())));
  const caller = "b7ad6b7169203331";
  const traceparent = `00-0af7651916cd43dd8448eb211c80319c-${caller}-01`;
  const root = tracer.start("chat m", { requestId: "req_1", traceparent });
  const attributes = { "gen_ai.request.model": "m", "magic.attempts": 2, "magic.cost_usd": 0, cost: 0.5, skip: null };
  const child = root.child("attempt", attributes);
  child.end("error");
  root.end();
  await tracer.flush();
  const send = otlpExporter({
    endpoint,
    headers: otlpHeaders("x-key=a%20b, other=1, plain=100%"),
    serviceVersion: "1",
    post: async (url, headers, body) => void (await fetch(url, { method: "POST", headers, body })),
  });
  await send(sortSpans(spans));
  expect(bodies[0]?.path).toBe("/v1/traces");
  expect(bodies[0]?.headers).toMatchObject({
    "x-key": "a b",
    other: "1",
    plain: "100%",
    "content-type": "application/json",
  });
  const document = JSON.parse(bodies[0]?.body ?? "") as ReturnType<typeof otlpDocument>;
  const [first, second] = document.resourceSpans[0]?.scopeSpans[0]?.spans ?? [];
  expect([first?.name, second?.name]).toEqual(["chat m", "attempt"]);
  expect([first?.parentSpanId, second?.parentSpanId]).toEqual([caller, first?.spanId]);
  // SERVER, whoever called, and CLIENT.
  expect([first?.kind, second?.kind]).toEqual([2, 3]);
  expect(second?.status).toEqual({ code: 2 });
  expect(second?.attributes).toEqual(
    expect.arrayContaining([
      { key: "magic.attempts", value: { intValue: "2" } },
      { key: "magic.cost_usd", value: { doubleValue: 0 } },
      { key: "cost", value: { doubleValue: 0.5 } },
      { key: "gen_ai.request.model", value: { stringValue: "m" } },
    ]),
  );
  expect(second?.attributes.map(({ key }) => key)).not.toContain("skip");
});

test("a traceparent counts as W3C Trace Context has it, a later version with more behind its flags too", () => {
  const tracer = createTracer();
  const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
  const taken = [`00-${ids}-01`, `cc-${ids}-01`, `cc-${ids}-01-more`];
  const refused = [
    `00-${ids}-01-more`,
    `00-${ids}-01-`,
    `cc-${ids}-01.more`,
    `ff-${ids}-01`,
    `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
  ];
  const of = (traceparent: string) => tracer.start("x", { requestId: "req_1", traceparent }).traceId;
  expect(taken.map(of)).toEqual(taken.map(() => ids.slice(0, 32)));
  expect(refused.map(of).filter((id) => id === ids.slice(0, 32) || /^0+$/.test(id))).toEqual([]);
});

test("beyond a thousand requests a second only those are traced in which something fails, and they whole", () => {
  const clock = heldClock();
  const tracer = createTracer({ clock });
  const call = (requestId: string, status: "ok" | "error") => {
    const root = tracer.start("call", { requestId });
    root.child("first attempt").end();
    root.child("second attempt").end(status);
    root.end("ok", () => ({ made: true }));
    return tracer.spansOf(requestId).map(({ name, attributes }) => [name, attributes["made"] ?? null]);
  };
  const whole = [
    ["call", true],
    ["first attempt", null],
    ["second attempt", null],
  ];
  for (let i = 0; i < 1_000; i++) expect(call(`req_${i}`, "ok")).toHaveLength(3);
  expect(call("req_beyond", "ok")).toEqual([]);
  expect(call("req_failed", "error").sort()).toEqual(whole);
  clock.advance(1_000);
  expect(call("req_later", "ok").sort()).toEqual(whole);
});
