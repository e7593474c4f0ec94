// The sliding window: never more than the limit in any window, wherever it begins, across restarts of both kinds; and what
// callers see of it.
import { afterEach, describe, expect, test } from "vitest";
import {
  createRateLimiter,
  type Policy,
  type StoredWindow,
  type WindowStore,
} from "#daemon/identity/limits/rate-limiter.ts";
import { SlidingWindow } from "#daemon/identity/limits/sliding-window.ts";
import { HandClock, startDaemon, type TestDaemon } from "./daemon.ts";
import { seeded } from "./random.ts";

const MINUTE = 60_000;

/** The most events that any window of `length` holds, each window half open. */
function most(times: readonly number[], length: number): number {
  let found = 0;
  let first = 0;
  for (const [last, time] of times.entries()) {
    while (time - (times[first] ?? 0) >= length) first++;
    found = Math.max(found, last - first + 1);
  }
  return found;
}

function memoryStore(): WindowStore {
  const stored = new Map<string, StoredWindow>();
  return {
    load: async (name) => structuredClone(stored.get(name)),
    save: async (name, window) => void stored.set(name, structuredClone(window)),
  };
}

describe("the window", () => {
  test("frees a slot exactly when its call leaves", () => {
    const window = new SlidingWindow(2, MINUTE);
    expect(window.take(0)).toEqual({ admitted: true, remaining: 1, resetMs: MINUTE });
    expect(window.take(10_000)).toEqual({ admitted: true, remaining: 0, resetMs: 50_000 });
    expect(window.take(59_999)).toEqual({ admitted: false, remaining: 0, resetMs: 1 });
    expect(window.take(60_000)).toEqual({ admitted: true, remaining: 0, resetMs: 10_000 });
    expect(window.take(69_999).admitted).toBe(false);
    expect(window.take(70_000).admitted).toBe(true);
  });

  test("a refused call counts for nothing: hammering does not keep the door shut", () => {
    const window = new SlidingWindow(1, MINUTE);
    for (let now = 0; now < MINUTE; now += 100) window.take(now);
    expect(window.take(MINUTE).admitted).toBe(true);
  });
});

describe.each([
  ["sandbox", 60],
  ["starter", 1_000],
  ["professional", 10_000],
])("%s: %i a minute", (name, limit) => {
  const policy: Policy = { name, limit, windowS: 60 };

  test("random arrivals, clean stops and kills: never above the limit, and nothing is lost for long", async () => {
    for (let seed = 0; seed < (limit > 1_000 ? 2 : 12); seed++) {
      const random = seeded(seed);
      const clock = new HandClock();
      const store = memoryStore();
      let limiter = createRateLimiter({ clock, store });
      const admitted: number[] = [];
      for (let step = 0; step < limit * 5; step++) {
        // Twice the limit on the average, with a long silence now and then.
        clock.advance(random.below(limit) === 0 ? random.below(20_000) : random.below(2) * Math.ceil(30_000 / limit));
        const chance = random.below(limit * 2);
        if (chance < 2) {
          // A stop stores what was counted; a kill leaves what was set aside.
          if (chance === 0) await limiter.close();
          limiter = createRateLimiter({ clock, store });
        }
        if ((await limiter.admit(policy)).admitted) admitted.push(clock.now());
      }
      expect(most(admitted, MINUTE), `seed ${seed}`).toBeLessThanOrEqual(limit);
      expect(most(admitted, MINUTE), `seed ${seed}`).toBeGreaterThan(limit / 4);
    }
  });

  test("a full window outlives a kill, and is free again a minute later", async () => {
    const clock = new HandClock();
    const store = memoryStore();
    const first = createRateLimiter({ clock, store });
    let count = 0;
    while ((await first.admit(policy)).admitted) count++;
    expect(count).toBe(limit);
    clock.advance(30_000);
    const second = createRateLimiter({ clock, store });
    expect((await second.admit(policy)).admitted).toBe(false);
    clock.advance(30_000);
    expect((await second.admit(policy)).admitted).toBe(true);
  });

  test("a clean stop loses no slot, a kill at most a second's worth", async () => {
    const half = Math.floor(limit / 2);
    for (const clean of [true, false]) {
      const clock = new HandClock();
      const store = memoryStore();
      const first = createRateLimiter({ clock, store });
      for (let index = 0; index < half; index++) await first.admit(policy);
      if (clean) await first.close();
      const second = createRateLimiter({ clock, store });
      let left = 0;
      while ((await second.admit(policy)).admitted) left++;
      expect(left).toBeLessThanOrEqual(limit - half);
      expect(left).toBeGreaterThanOrEqual(limit - half - (clean ? 0 : Math.ceil(limit / 60)));
    }
  });

  test("what a kill leaves open is over a minute after the start, whenever the first call comes", async () => {
    const clock = new HandClock();
    const store = memoryStore();
    await createRateLimiter({ clock, store }).admit(policy);
    const second = createRateLimiter({ clock, store });
    clock.advance(MINUTE);
    let count = 0;
    while ((await second.admit(policy)).admitted) count++;
    expect(count).toBe(limit);
  });

  test("a wall clock that jumps back an hour gives no free calls and takes none for an hour", async () => {
    const clock = new HandClock();
    const store = memoryStore();
    const first = createRateLimiter({ clock, store });
    while ((await first.admit(policy)).admitted);
    await first.close();
    const earlier = { now: () => clock.now() - 3_600_000, monotonic: () => clock.monotonic() };
    const second = createRateLimiter({ clock: earlier, store });
    expect((await second.admit(policy)).admitted).toBe(false);
    clock.advance(MINUTE);
    expect((await second.admit(policy)).admitted).toBe(true);
  });
});

test("concurrent calls share the window: exactly the limit is admitted", async () => {
  const limiter = createRateLimiter({ clock: new HandClock(), store: memoryStore() });
  const policy: Policy = { name: "sandbox", limit: 60, windowS: 60 };
  const decisions = await Promise.all(Array.from({ length: 300 }, () => limiter.admit(policy)));
  expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(60);
});

test("a storage that refuses is asked once in five seconds, and what was counted meanwhile is stored then", async () => {
  const clock = new HandClock();
  const store = memoryStore();
  const policy: Policy = { name: "sandbox", limit: 60, windowS: 60 };
  let refusing = true;
  let refusals = 0;
  const save: WindowStore["save"] = async (...window) => {
    if (!refusing) return store.save(...window);
    refusals++;
    throw new Error("the disk is full");
  };
  const limiter = createRateLimiter({ clock, store: { ...store, save } });
  for (let call = 0; call < 10; call++) expect((await limiter.admit(policy)).admitted).toBe(true);
  expect(refusals).toBe(1);
  refusing = false;
  clock.advance(5_000);
  await limiter.admit(policy);
  const again = createRateLimiter({ clock, store });
  for (let call = 0; call < 49; call++) expect((await again.admit(policy)).admitted).toBe(true);
  expect((await again.admit(policy)).admitted).toBe(false);
});

describe("over HTTP", () => {
  let daemon: TestDaemon;
  afterEach(() => daemon.close());

  const makeKey = async (body: object) =>
    (await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"], ...body } })).body;
  const use = (token: string, path = "/v1/keys?limit=1") => daemon.call("GET", path, { token });

  test("the sandbox takes 60 a minute for the whole account, says so, and outlives a restart", async () => {
    const clock = new HandClock();
    daemon = await startDaemon({ clock });
    const keys = [await makeKey({ tier: "starter" }), await makeKey({ tier: "enterprise" })];
    const first = await use(keys[0].secret);
    expect(first.headers.get("ratelimit-policy")).toBe('"sandbox";q=60;w=60');
    expect(first.headers.get("ratelimit")).toBe('"sandbox";r=59;t=60');
    clock.advance(20_000);
    for (let index = 1; index < 60; index++) {
      if (index === 30) await daemon.restart();
      const answer = await use(keys[index % 2].secret);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("ratelimit")).toBe(`"sandbox";r=${59 - index};t=40`);
    }
    const refused = await use(keys[1].secret);
    expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([429, "rate_limited", true]);
    expect(refused.headers.get("ratelimit")).toBe('"sandbox";r=0;t=40');
    expect(refused.headers.get("retry-after")).toBe("40");
    expect(refused.body.detail).toMatch(/sandbox.*60/);
    clock.advance(40_000);
    expect((await use(keys[0].secret)).status).toBe(200);
    expect((await use(keys[0].secret)).status).toBe(429);
  });

  test("a live key has its tier's limit; enterprise has none and says nothing", async () => {
    daemon = await startDaemon();
    for (const [tier, quota] of [
      ["starter", 1_000],
      ["professional", 10_000],
    ] as const) {
      const key = await makeKey({ tier, environment: "live" });
      const answer = await use(key.secret);
      expect(answer.headers.get("ratelimit-policy")).toBe(`"${tier}";q=${quota};w=60`);
      expect(answer.headers.get("ratelimit")).toMatch(new RegExp(`^"${tier}";r=${quota - 1};t=60$`));
    }
    const key = await makeKey({ tier: "enterprise", environment: "live" });
    expect((await use(key.secret)).headers.has("ratelimit")).toBe(false);
  });

  test("health, the token endpoint, the gateway, refused callers and the local token are not counted", async () => {
    daemon = await startDaemon();
    const { api_key, gateway_token } = daemon.app.credentials;
    const client = (await daemon.call("POST", "/v1/clients", { body: { scopes: ["keys:read"] } })).body;
    const key = await makeKey({});
    for (let index = 0; index < 65; index++) {
      await daemon.call("GET", "/v1/health", { token: api_key });
      await daemon.call("POST", "/v1/auth/token", { token: null, body: client });
      await daemon.call("GET", "/v1/models", { token: gateway_token });
      await daemon.call("GET", "/v1/keys", { token: "sk_test_wrong" });
      await daemon.call("GET", "/v1/keys");
    }
    expect((await use(key.secret)).headers.get("ratelimit")).toBe('"sandbox";r=59;t=60');
  });
});
