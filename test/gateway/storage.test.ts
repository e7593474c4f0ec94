// The gateway's units of storage: the same figures on SQLite and on a real Postgres.
import { cpSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { retain } from "#daemon/gateway/ledger/retention.ts";
import { type LedgerRow, rowText } from "#daemon/gateway/ledger/row.ts";
import { gatewayStores } from "#daemon/gateway/stores.ts";
import { endPredecessor, noteProcess } from "#daemon/storage/predecessor.ts";
import { createPresence } from "#daemon/storage/presence.ts";
import { systemClock } from "#shared/clock.ts";
import { dialectsWith, sharedPostgres } from "#test/dialects.ts";
import { mortal } from "#test/storage/mortal.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";
import { within } from "../patience.ts";
import { ledgerRow } from "./ledger-row.ts";
import { completion, principal, stream, type TestGateway, testGateway } from "./pipeline.ts";
import { error, startUpstream } from "./upstream.ts";

const postgres = sharedPostgres();
const { missing: noPostgres } = postgres;
const patient = { timeout: within(5_000) };

const row = (more: Partial<LedgerRow>) => rowText(ledgerRow(more));

describe.each(dialectsWith(postgres))("on $name", ({ open }) => {
  test("sums pass 2^53, keys may be null, days come in order, filters hold", async () => {
    const { ledger } = gatewayStores(await open(), systemClock);
    const large = Number.MAX_SAFE_INTEGER;
    await ledger.append(
      1,
      [
        row({ user: "ada", cost_pico: large }),
        row({ user: "ada", cost_pico: large, model: "é 🎉" }),
        row({ at: "2026-03-02T00:00:00.000Z", environment: "sandbox", cost_pico: null }),
        ...Array.from({ length: 1_200 }, () => row({ user: "many", team: "t" })),
      ],
      [],
    );
    const users = await ledger.usage({ by: "user" });
    expect(users.map(({ key, requests }) => [key, requests])).toEqual([
      ["ada", 2],
      ["many", 1_200],
      [null, 1],
    ]);
    expect(users[0]?.cost_pico).toBe(String(2n * BigInt(large)));
    expect(users[1]).toMatchObject({ prompt_tokens: 15_600, completion_tokens: 9_600, cost_pico: "1200000" });
    expect(users[2]).toMatchObject({ cost_pico: "0", unpriced: 1 });
    expect((await ledger.usage({ by: "day" })).map(({ key }) => key)).toEqual(["2026-03-01", "2026-03-02"]);
    expect(await ledger.usage({ by: "model", where: { user: "ada", model: "openai/é 🎉" } })).toHaveLength(1);
    expect(await ledger.usage({ by: "team", environment: "sandbox" })).toMatchObject([{ key: null, requests: 1 }]);
    expect(await ledger.usage({ by: "user", since: "2026-03-02", until: "2026-03-03" })).toHaveLength(1);
    expect(await ledger.usage({ by: "user", since: "9999-12-31T12:00:00Z" })).toEqual([]);
  });

  test("what is gathered and what is read call by call add up to every call once, wherever a span begins and ends", async () => {
    const { ledger } = gatewayStores(await open(), systemClock);
    const start = Date.parse("2026-03-01T00:00:00Z");
    const times = Array.from({ length: 300 }, (_, index) => start + index * 1_000_000 + (index % 7));
    const rows = times.map((at, index) => row({ at: new Date(at).toISOString(), user: `u${index % 3}` }));
    await ledger.append(1, rows.slice(0, 200), []);
    await ledger.gather();
    await ledger.append(2, rows.slice(200), []);
    const counted = async (since?: number, until?: number) => {
      const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
      const sums = await ledger.usage({ by: "user", since: iso(since), until: iso(until) });
      return sums.reduce((total, { requests }) => total + Number(requests), 0);
    };
    const edges = [undefined, times[0], start + 86_400_000, times[99], Number(times[250]) + 1, start + 2 * 86_400_000];
    for (const since of edges)
      for (const until of edges) {
        const fits = (at: number) => at >= (since ?? 0) && at < (until ?? Number.POSITIVE_INFINITY);
        expect(await counted(since, until)).toBe(times.filter(fits).length);
      }
  });

  test("sums come in pages that leave nothing out, those of equal cost too", async () => {
    const { ledger } = gatewayStores(await open(), systemClock);
    const costs = [7, 7, 7, 100, 20, 9, null];
    await ledger.append(
      1,
      costs.map((cost_pico, index) => row({ user: index === 2 ? null : `u${index}`, cost_pico })),
      [],
    );
    const keys: (string | null)[] = [];
    for (let after: { key: string | null; cost_pico: string } | undefined; ; ) {
      const page = await ledger.usage({ by: "user", limit: 2, after });
      keys.push(...page.map(({ key }) => key));
      if (page.length < 2) break;
      after = page.at(-1);
    }
    expect(keys).toEqual(["u3", "u4", "u5", "u0", "u1", null, "u6"]);
  });

  test("calls are kept their days, sums by day for ever, and a span that cuts a day without its calls is refused", async () => {
    const storage = await open();
    const now = Date.parse("2026-03-10T12:00:00Z");
    const stores = gatewayStores(storage, { now: () => now, monotonic: () => now });
    const days = Array.from({ length: 2_500 }, (_, index) => `2026-03-0${1 + (index % 5)}T08:00:00.000Z`);
    await stores.ledger.append(
      1,
      days.map((at) => row({ at })),
      [{ key: "team:t:day:2026-03-01", spent: 7, lease: 0 }],
    );
    await retain({ ...stores, clock: { now: () => now, monotonic: () => now } }, 6, () => false);
    const kept = (await storage.units.ledger.between({
      by: "day",
      since: "2026-01-01",
      until: "2027-01-01",
    })) as object[];
    expect(kept).toMatchObject([
      { key: "2026-03-04", requests: 500 },
      { key: "2026-03-05", requests: 500 },
    ]);
    const counted = async (since?: string, until?: string) =>
      (await stores.ledger.usage({ by: "provider", since, until })).map(({ requests }) => requests);
    expect(await counted()).toEqual([2_500]);
    expect(await counted("2026-03-01T00:00:00Z", "2026-03-04T07:00:00Z")).toEqual([1_500]);
    await expect(counted("2026-03-01T07:00:00Z")).rejects.toMatchObject({
      code: "validation_failed",
      message: expect.stringContaining("2026-03-04"),
    });
    expect(await stores.budgets.load(["team:t:day:2026-03-01"])).toMatchObject([{ spent: 7 }]);
    await stores.ledger.append(2, [], [{ key: "token:x:total", spent: 7, lease: 0 }]);
    const later = now + 63 * 86_400_000;
    const clock = { now: () => later, monotonic: () => later };
    await retain({ ...stores, clock }, 6, () => false);
    // It may be the clock alone that says so.
    expect(await stores.budgets.load(["team:t:day:2026-03-01"])).toHaveLength(1);
    await gatewayStores(storage, clock).ledger.append(1, [], [{ key: "token:y:total", spent: 7, lease: 0 }]);
    await retain({ ...stores, clock }, 6, () => false);
    expect(await stores.budgets.load(["team:t:day:2026-03-01", "token:x:total"])).toMatchObject([
      { key: "token:x:total", spent: 7 },
    ]);
    expect(await counted()).toEqual([2_500]);
  });

  test("a batch that is tried again, since the word that it is stored was lost, is stored once", async () => {
    const storage = await open();
    const [{ ledger, budgets }, other] = [gatewayStores(storage, systemClock), gatewayStores(storage, systemClock)];
    const spent = [{ key: "a", spent: 5, lease: 0 }];
    for (const batch of [1, 1, 2, 2, 1]) await ledger.append(batch, [row({ user: `of ${batch}` })], spent);
    await other.ledger.append(1, [row({ user: "another daemon's" })], spent);
    const sums = await ledger.usage({ by: "user" });
    expect(sums.map(({ key, requests }) => [key, requests]).sort()).toEqual([
      ["another daemon's", 1],
      ["of 1", 1],
      ["of 2", 1],
    ]);
    expect(await budgets.load(["a"])).toMatchObject([{ spent: 15 }]);
  });

  test("budgets add up, leases go no further than the limit and are charged once, when their daemon is dead", async () => {
    const { storage, die } = mortal(await open());
    let time = Date.parse("2026-01-01");
    const daemon = () => gatewayStores(storage, { now: () => time, monotonic: () => time });
    const [one, two, next] = [daemon(), daemon(), daemon()];
    const raise = (lease: number) => ({ key: "a", lease, limit: 100 });
    expect(await one.budgets.raise(raise(70))).toEqual({ key: "a", spent: 0, elsewhere: 0, lease: 70 });
    await one.ledger.append(1, [], [{ key: "a", spent: 30, lease: 40 }]);
    expect(await two.budgets.raise(raise(50))).toEqual({ key: "a", spent: 30, elsewhere: 40, lease: 30 });
    expect(await two.budgets.raise(raise(10))).toMatchObject({ lease: 30 });
    expect(await one.budgets.load(["a", "b"])).toEqual([{ key: "a", spent: 30, elsewhere: 30 }]);
    time += 60_000;
    if (storage.dialect === "postgres") {
      // By the database's clock they live, whatever this one's says.
      expect(await next.budgets.recover()).toEqual([]);
      await die();
    }
    expect(await next.budgets.recover()).toEqual([{ key: "a", charged: 70 }]);
    expect(await next.budgets.recover()).toEqual([]);
    // What was spent before is stored of new accounts alone.
    await next.budgets.begin([
      { key: "a", spent: 7 },
      { key: "new", spent: 7 },
    ]);
    expect(await next.budgets.load(["a", "new"])).toEqual([
      { key: "a", spent: 100, elsewhere: 0 },
      { key: "new", spent: 7, elsewhere: 0 },
    ]);
  });

  test("whoever starts in the root of a daemon that died need not wait to know that it is dead", async () => {
    const storage = await open();
    const state = temporaryFolder();
    const clock = { now: () => Date.parse("2026-01-01"), monotonic: () => 0 };
    const daemon = () => {
      const presence = createPresence(storage, clock, (process) => noteProcess(state, process));
      onTestFinished(presence.close);
      return gatewayStores(storage, clock, presence);
    };
    const taking = {
      owner: "o",
      key: "k",
      fingerprint: "f",
      request_id: "r",
      now: "2026-01-01T00:00:00.000Z",
      expires_at: "2026-01-02",
    };
    const former = daemon();
    expect(await former.keys.begin(taking)).toBeNull();
    const alive = storage.dialect === "postgres";
    expect(await daemon().keys.begin(taking)).toMatchObject({ state: "open", alive });
    const { job } = storage.units;
    const claimed = async (owner: string) =>
      (await job.claim({ queue: "q", owner, now: clock.now(), leaseMs: 60_000, limit: 1, atWork: [] })).length;
    noteProcess(state, "proc_a");
    await job.put({ id: "job_a", queue: "q", key: null, payload: "{}", runAt: 0 });
    expect(await claimed("proc_a")).toBe(1);
    // A copy of its root tells nothing of it.
    const copy = temporaryFolder();
    cpSync(state, copy, { recursive: true });
    await endPredecessor(copy, storage.units, clock);
    expect(await daemon().keys.begin(taking)).toMatchObject({ alive });
    expect(await claimed("proc_b")).toBe(0);
    await endPredecessor(state, storage.units, clock);
    expect(await daemon().keys.begin(taking)).toMatchObject({ state: "open", alive: false });
    expect(await claimed("proc_b")).toBe(1);
  });

  test("calls under way of a daemon that died count no longer, and a minute later nothing does", async () => {
    const { units, dialect } = await open();
    const { gatewayLimit, idempotency } = units;
    const now = "2026-01-01T00:00:00.000Z";
    await idempotency.live({ process: "a", now, until: "2026-01-01T00:01:00.000Z" });
    const limits = { concurrent: 2, requests_per_minute: 5 };
    const take = (process: string, underWay: number, count: number, at = now) =>
      gatewayLimit.round({
        process,
        now: at,
        callers: [{ caller: "c", underWay, corrections: [], calls: Array(count).fill({ tokens: 1, limits }) }],
      });
    const refusals = ({ callers }: Awaited<ReturnType<typeof take>>) =>
      callers[0]?.map(({ refused }) => refused?.limit ?? null);
    expect(refusals(await take("a", 0, 3))).toEqual([null, null, "concurrent"]);
    expect(refusals(await take("b", 0, 1))).toEqual(["concurrent"]);
    // Postgres goes by its own clock.
    await idempotency.live({ process: "a", now, until: now });
    expect(refusals(await take("b", 0, 1))).toEqual([null]);
    expect(refusals(await take("b", 0, 2))).toEqual([null, null]);
    const last = await take("b", 0, 1);
    expect(last.callers[0]).toMatchObject([{ refused: { limit: "requests_per_minute" }, requests: 5, tokens: 5 }]);
    if (dialect === "sqlite") expect(refusals(await take("b", 0, 1, "2026-01-01T00:01:01.000Z"))).toEqual([null]);
  });

  test("a key is taken by one, answered once, given back, and forgotten when it expired", async () => {
    const storage = await open();
    const { keys } = gatewayStores(storage, systemClock);
    const taking = (now: string, key = "k", expires_at = "2026-01-02") =>
      keys.begin({ owner: "o", key, fingerprint: "f", request_id: "r", now, expires_at });
    const taken = await Promise.all(Array.from({ length: 20 }, () => taking("2026-01-01")));
    expect(taken.filter((found) => found === null).length).toBe(1);
    await keys.release({ owner: "o", key: "k" });
    expect(await taking("2026-01-01")).toBeNull();
    await keys.finish({ owner: "o", key: "k", answer: "sealed" });
    await keys.release({ owner: "o", key: "k" });
    expect(await taking("2026-01-01")).toMatchObject({ state: "done", answer: "sealed" });
    // Daemons that share a Postgres go by its clock: one that is ahead forgets no answer of the others.
    const ahead = storage.dialect === "postgres" ? { state: "done" } : null;
    expect(await taking("2026-01-03").then((row) => row && { state: row.state })).toEqual(ahead);
    for (let i = 0; i < 2; i++) expect(await taking("2026-01-01", "short", "2026-01-01")).toBeNull();
    expect(await keys.purge({ now: "2026-01-01", limit: 10 })).toBe(1);
  });

  test("of a call's signatures the newest is kept; expired ones and the oldest beyond a number are forgotten", async () => {
    const { gatewaySignature: unit } = (await open()).units;
    const row = (key: string, signature = key) => ({ key, signature });
    await unit.keep({ rows: [row("a"), row("b")], expires_at: "2026-01-02" });
    await unit.keep({ rows: [row("b", "newer"), row("c")], expires_at: "2026-01-03" });
    await unit.keep({ rows: [row("d")], expires_at: "2026-01-04" });
    const kept = async () =>
      (await unit.find({ keys: ["a", "b", "c", "d", "e"] })).map(({ key, signature }) => `${key}:${signature}`).sort();
    expect(await kept()).toEqual(["a:a", "b:newer", "c:c", "d:d"]);
    await unit.purge({ now: "2026-01-02", most: 10 });
    expect(await kept()).toEqual(["b:newer", "c:c", "d:d"]);
    await unit.purge({ now: "2026-01-02", most: 1 });
    expect(await kept()).toEqual(["d:d"]);
  });

  test("traces are found by their request", async () => {
    const { trace } = (await open()).units;
    await trace.append({
      rows: JSON.stringify([
        ["a", "t", "[1]"],
        ["b", "t", "[2]"],
      ]),
    });
    await trace.append({ rows: JSON.stringify([["a", "t", "[3]"]]) });
    expect(await trace.find({ requestId: "a" })).toEqual(["[1]", "[3]"]);
  });
});

test.skipIf(noPostgres)(
  "daemons on one Postgres spend from one budget to the last call, and join each other's keyed calls",
  async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const storage = await temporaryStorage({ databaseUrl: await postgres.server.createDatabase() });
    const daemon = () =>
      testGateway(
        {
          providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
          prices: { "openai/m": { input: 0, output: 10 }, "openai/free": { input: 0, output: 0 } },
          budgets: [{ scope: "engagement", usd: 0.01, per: "month" }],
        },
        { storage },
      );
    const [one, two] = [await daemon(), await daemon()];
    const waiting: (() => void)[] = [];
    upstream.answer = (response) => void waiting.push(() => response.end(completion(10, 100)));
    const answer = () => waiting.splice(0).forEach((each) => void each());
    // Ten answers of 100 tokens at $10 a million.
    const call = ({ chat }: TestGateway) => chat({ model: "openai/m", max_tokens: 100 });
    const calls = Array.from({ length: 30 }, (_, i) =>
      call(i % 2 ? one : two).then(
        () => "served",
        ({ code }) => code,
      ),
    );
    await expect.poll(() => waiting.length, patient).toBe(10);
    // One that starts charges nothing of what the others have in flight.
    const three = await daemon();
    answer();
    expect((await Promise.all(calls)).filter((code) => code === "insufficient_quota").length).toBe(20);
    await Promise.all([one.gateway.flush(), two.gateway.flush()]);
    const key = `engagement:default:month:${new Date().toISOString().slice(0, 7)}`;
    expect(await storage.units.budget.load({ keys: [key], process: "" })).toEqual([{ key, spent: 1e10, elsewhere: 0 }]);
    await expect(call(three)).rejects.toMatchObject({ code: "insufficient_quota" });

    const keyed = ({ chat }: TestGateway) => chat({ model: "openai/free" }, { idempotencyKey: "k" });
    const first = keyed(one);
    await expect.poll(() => waiting.length, patient).toBe(1);
    const second = keyed(two);
    answer();
    expect((await second).text).toBe((await first).text);
    expect((await second).headers["idempotent-replayed"]).toBe("true");
    expect(upstream.requests.length).toBe(11);
  },
);

test.skipIf(noPostgres)(
  "what a daemon could not store of a keyed call keeps nobody waiting at the others",
  async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.answer = (response, _request, body) =>
      void response.end(body.includes('"stream"') ? stream() : completion());
    const storage = await temporaryStorage({ databaseUrl: await postgres.server.createDatabase() });
    const { gatewayKey } = storage.units;
    /** How often the storage is away, or its word is lost. */
    const away = { begin: 0, finish: 0, release: 0, abandon: 0 };
    const unheard = new MagicError("storage_unavailable", "no word of it", { extra: { outcome: "unknown" } });
    const lost = (unit: keyof typeof away) => away[unit] > 0 && away[unit]-- > 0;
    const failing: typeof gatewayKey = {
      ...gatewayKey,
      async begin(row) {
        const found = await gatewayKey.begin(row);
        if (lost("begin")) throw unheard;
        return found;
      },
      finish: async (row) => (lost("finish") ? Promise.reject(unheard) : gatewayKey.finish(row)),
      release: async (row) => (lost("release") ? Promise.reject(unheard) : gatewayKey.release(row)),
      abandon: async (row) => (lost("abandon") ? Promise.reject(unheard) : gatewayKey.abandon(row)),
      purge: gatewayKey.purge,
    };
    const units = new Proxy(storage.units, {
      get: (all, noun) => (noun === "gatewayKey" ? failing : Reflect.get(all, noun)),
    });
    const config = { providers: { own: { type: "openai" as const, base_url: `${upstream.url}/v1` } } };
    const [one, two] = [
      await testGateway(config, { storage: { ...storage, units } }),
      await testGateway(config, { storage }),
    ];
    const ask = ({ chat }: TestGateway, key: string, body = {}) =>
      chat({ model: "own/m", ...body }, { idempotencyKey: key }).then(
        ({ status, text }) => /"code":"(\w+)"/.exec(text)?.[1] ?? status,
        ({ code }) => code,
      );
    const unknown = "idempotency_outcome_unknown";
    Object.assign(away, { finish: 2, abandon: 1 });
    expect(await ask(one, "whole")).toBe("storage_unavailable");
    expect(await ask(one, "streamed", { stream: true })).toBe(unknown);
    Object.assign(away, { begin: 1, release: 2 });
    expect(await ask(one, "begun")).toBe("storage_unavailable");
    upstream.answer = error(429);
    expect(await ask(one, "busy")).toBe("rate_limit_exceeded");
    upstream.answer = (response) => void response.end(completion());
    const elsewhere = [ask(two, "whole"), ask(two, "streamed", { stream: true }), ask(two, "begun"), ask(two, "busy")];
    expect(await Promise.all(elsewhere)).toEqual([unknown, unknown, 200, 200]);
    expect(upstream.requests.length).toBe(5);
  },
);

test.skipIf(noPostgres)(
  "what is numbered first and committed last is counted as well, and nobody waits for a vacuum",
  async () => {
    const databaseUrl = await postgres.server.createDatabase();
    const storage = await temporaryStorage({ databaseUrl });
    const { ledger } = gatewayStores(storage, systemClock);
    await ledger.append(1, [row({ user: "first" })], []);
    const slow = new pg.Client({ connectionString: databaseUrl });
    await slow.connect();
    onTestFinished(() => slow.end());
    await slow.query("begin; lock table gateway_gate in row share mode");
    const { ledgerColumns } = await import("#daemon/storage/tables/gateway.ts");
    const others = ledgerColumns.filter((name) => name !== "end_user").join(", ");
    await slow.query(
      `insert into gateway_ledger (end_user, ${others}) select 'slow', ${others} from gateway_ledger where end_user = 'first'`,
    );
    await ledger.append(2, [row({ user: "quick" })], []);
    const sums = ledger.usage({ by: "user" });
    await expect(Promise.race([sums.then(() => "answered"), pause(50)])).resolves.toBeUndefined();
    await slow.query("commit");
    expect((await sums).map(({ key }) => key).sort()).toEqual(["first", "quick", "slow"]);
    await slow.query("begin; lock table gateway_gate in exclusive mode");
    const appended = ledger.append(3, [row({ user: "later" })], []).then(() => "appended");
    await expect(Promise.race([appended, pause(50, "waits")])).resolves.toBe("waits");
    await slow.query("commit; begin; lock table gateway_ledger in share update exclusive mode");
    await appended;
    expect(await ledger.usage({ by: "user" })).toHaveLength(4);
  },
);

test.skipIf(noPostgres)("daemons on one Postgres count limits together: calls, tokens, and calls at once", async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const databaseUrl = await postgres.server.createDatabase();
  const daemon = async (limits: object) =>
    testGateway(
      {
        providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
        prices: { "openai/m": { input: 0, output: 0 } },
        limits,
      },
      { storage: await temporaryStorage({ databaseUrl }) },
    );
  const waiting: (() => void)[] = [];
  upstream.answer = (response) => void waiting.push(() => response.end(completion(10, 20)));
  const answer = () => waiting.splice(0).forEach((each) => void each());
  const call = ({ chat }: TestGateway, id: string, more: object = {}) =>
    chat({ model: "openai/m", ...more }, { principal: principal({ id }) }).then(
      ({ headers }) => headers,
      (error: { message: string; retryAfterS: number }) => error.message,
    );
  const both = [await daemon({ requests_per_minute: 10 }), await daemon({ requests_per_minute: 10 })];
  const pairOf = (index: number) => both[index % 2] as TestGateway;
  const calls = Array.from({ length: 30 }, (_, index) => call(pairOf(index), "rate"));
  await expect.poll(() => waiting.length, patient).toBe(10);
  answer();
  const answers = await Promise.all(calls);
  expect(answers.filter((each) => typeof each === "string").length).toBe(20);
  const left = answers.flatMap((each) => (typeof each === "string" ? [] : [each["x-ratelimit-remaining-requests"]]));
  expect(left.map(Number).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);

  const few = [await daemon({ concurrent: 3 }), await daemon({ concurrent: 3 })] as const;
  const running = [call(few[0], "many"), call(few[0], "many"), call(few[1], "many")];
  await expect.poll(() => waiting.length, patient).toBe(3);
  expect(await call(few[1], "many")).toMatch(/3 calls at once/);
  answer();
  await Promise.all(running);
  const served = async (gateway: TestGateway, id: string, more: object = {}) => {
    const trying = call(gateway, id, more);
    while (!(await Promise.race([trying.then(() => true), pause(5)])) && waiting.length === 0);
    answer();
    return typeof (await trying) === "object";
  };
  // The other daemon's calls are over as soon as it has said so.
  await expect.poll(() => served(few[1], "many"), patient).toBe(true);

  const counted = [await daemon({ tokens_per_minute: 1_000 }), await daemon({ tokens_per_minute: 1_000 })] as const;
  const dear = call(counted[0], "dear", { max_tokens: 900 });
  await expect.poll(() => waiting.length, patient).toBe(1);
  expect(await call(counted[1], "dear", { max_tokens: 200 })).toMatch(/1000 tokens per minute .* are left/);
  answer();
  await dear;
  // What it did not use is free again.
  await expect.poll(() => served(counted[1], "dear", { max_tokens: 200 }), patient).toBe(true);
});
