// Whom the strategy `fastest` asks first: one that is quick, of which nothing is known, that failed, that hangs, or that nobody waits for.
import type { ServerResponse } from "node:http";
import { beforeEach, expect, test } from "vitest";
import { completion, stream, testGateway } from "./pipeline.ts";
import { error, type Upstream, upstreamOfFile } from "./upstream.ts";

const a = upstreamOfFile();
const b = upstreamOfFile();
let now: number;
const clock = { now: () => Date.now(), monotonic: () => now };
beforeEach(() => {
  now = 1_000_000;
});

/** This machine may be busy. */
const patient = { timeout: 20_000 };
const provider = ({ url }: Upstream) => ({ type: "openai" as const, base_url: `${url}/v1`, api_key: "k" });
const config = () => ({
  providers: { a: provider(a), b: provider(b) },
  policies: { p: { candidates: ["a/m", "b/m"], strategy: "fastest" as const, retries: 0, timeout_ms: 300_000 } },
});

async function fastest() {
  const { chat } = await testGateway(config(), { clock });
  const served = async (stream = false, signal = new AbortController().signal) =>
    (await chat({ model: "p", stream }, { signal })).headers["x-magic-provider"];
  return {
    served,
    /** Who serves so many calls, one after the other. */
    async inTurn(calls: number) {
      let order = "";
      for (let i = 0; i < calls; i++) order += await served();
      return order;
    },
  };
}

const taking =
  (streamMs: number, wholeMs = streamMs) =>
  (response: ServerResponse, _request: unknown, body: string) => {
    const streamed = body.includes('"stream":true');
    now += streamed ? streamMs : wholeMs;
    response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
    response.end(streamed ? stream() : completion());
  };

test("streams and whole answers are measured apart", async () => {
  a.answer = taking(100, 1_500);
  b.answer = taking(300, 1_000);
  const { served } = await fastest();
  const order: unknown[] = [];
  for (const streamed of [true, true, false, false, false, true]) order.push(await served(streamed));
  expect(order).toEqual(["a", "b", "a", "b", "b", "a"]);
});

test("what failed once comes last for ten seconds and is then as quick as it was", async () => {
  a.answer = taking(100);
  b.answer = taking(12_000);
  const { served, inTurn } = await fastest();
  expect(await inTurn(3)).toBe("aba");
  a.answer = error(500);
  expect(await served()).toBe("b");
  a.answer = taking(100);
  now += 9_000 - 12_000;
  expect(await inTurn(1)).toBe("b");
  expect(await inTurn(5)).toBe("aaaaa");
});

test.each([
  ["fails", error(500)],
  ["has no more quota", error(429, "insufficient_quota")],
])("what %s is asked once in ten seconds, however fast it does so", async (_name, answer) => {
  a.answer = answer;
  b.answer = taking(100);
  const { inTurn } = await fastest();
  expect(await inTurn(99)).toBe("b".repeat(99));
  expect(a.requests.length).toBe(1);
  now += 1_000;
  expect(await inTurn(99)).toBe("b".repeat(99));
  expect(a.requests.length).toBe(2);
});

test("what asks for more time than that gets it", async () => {
  a.answer = error(429, "x", { "retry-after": "60" });
  b.answer = taking(100);
  const { inTurn } = await fastest();
  expect(await inTurn(3)).toBe("bbb");
  now += 59_000;
  expect(await inTurn(3)).toBe("bbb");
  expect(a.requests.length).toBe(1);
  now += 1_000;
  expect(await inTurn(3)).toBe("bbb");
  expect(a.requests.length).toBe(2);
});

test("whose key is refused is not asked first again", async () => {
  a.answer = error(401);
  b.answer = taking(100);
  const { inTurn } = await fastest();
  expect(await inTurn(4)).toBe("abbb");
});

test("a stream that breaks off is no quick answer", async () => {
  a.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(stream().slice(0, 300));
  };
  b.answer = taking(500);
  const { served } = await fastest();
  expect([await served(true), await served(true), await served(true)]).toEqual(["a", "b", "b"]);
});

test("of one that is not known only one call finds out whether it answers", async () => {
  const waiting: ServerResponse[] = [];
  a.answer = (response) => void waiting.push(response);
  b.answer = taking(100);
  const { served } = await fastest();
  const first = served();
  await expect.poll(() => a.requests.length, patient).toBe(1);
  expect(new Set([await served(), await served(), await served()])).toEqual(new Set(["b"]));
  waiting[0]?.end(completion());
  expect(await first).toBe("a");
});

test("one that hangs is passed over as soon as it is slower than the next, before any call to it has failed", async () => {
  a.answer = taking(100);
  b.answer = taking(1_000);
  const { served, inTurn } = await fastest();
  expect(await inTurn(3)).toBe("aba");
  const hanging: ServerResponse[] = [];
  a.answer = (response) => void hanging.push(response);
  const stuck = [served(), served()];
  await expect.poll(() => a.requests.length, patient).toBe(4);
  now += 1_500;
  expect(await inTurn(3)).toBe("bbb");
  for (const response of hanging) response.end(completion());
  expect(await Promise.all(stuck)).toEqual(["a", "a"]);
});

test("one long answer that is alone under way sends nobody elsewhere", async () => {
  a.answer = taking(100);
  b.answer = taking(1_000);
  const { served, inTurn } = await fastest();
  expect(await inTurn(3)).toBe("aba");
  const long: ServerResponse[] = [];
  a.answer = (response) => void long.push(response);
  const waiting = served();
  await expect.poll(() => long.length, patient).toBe(1);
  a.answer = taking(100);
  now += 60_000;
  expect(await inTurn(3)).toBe("aaa");
  long[0]?.end(completion());
  expect(await waiting).toBe("a");
});

test("one for which nobody waits long enough is no longer taken for the fastest", async () => {
  a.answer = taking(100);
  b.answer = taking(1_000);
  const { served, inTurn } = await fastest();
  expect(await inTurn(3)).toBe("aba");
  a.answer = () => {};
  let left = 0;
  for (; left < 5 && b.requests.length === 1; left++) {
    const client = new AbortController();
    const asked = a.requests.length + b.requests.length;
    const call = served(false, client.signal);
    await expect.poll(() => a.requests.length + b.requests.length, patient).toBe(asked + 1);
    now += 5_000;
    client.abort();
    await call;
  }
  expect(left).toBeLessThan(3);
});

test("one that answered long ago and hangs since is not asked first again by each who leaves it", async () => {
  a.answer = taking(100);
  b.answer = taking(1_000);
  const { served, inTurn } = await fastest();
  expect(await inTurn(3)).toBe("aba");
  a.answer = () => {};
  now += 6 * 60_000;
  const client = new AbortController();
  const call = served(false, client.signal);
  await expect.poll(() => a.requests.length, patient).toBe(3);
  now += 5_000;
  client.abort();
  await call;
  expect(await inTurn(3)).toBe("bbb");
});
