// Jobs, connections, syncs, webhooks and OAuth states: the same behaviour on SQLite and on a real Postgres.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { createIdempotency } from "#daemon/identity/idempotency/idempotency.ts";
import { createPresence } from "#daemon/storage/presence.ts";
import type { NewConnection } from "#daemon/storage/repositories/connection.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { DeliveryRecord } from "#daemon/storage/tables/webhook.ts";
import { dialectsWith, sharedPostgres } from "#test/dialects.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";
import { mortal } from "./mortal.ts";

const postgres = sharedPostgres();

const now = "2026-01-01T00:00:00.000Z";
const environment = "live" as const;
const limit = { name: "connections", max: 2, tier: "starter", wayOut: "Delete one." };

function connection(id: string): NewConnection {
  return {
    ...{ id, environment, provider: "postgres", name: id, status: "pending", metadata: { a: 1 }, secret: null },
    health: { status: "unknown", checked_at: null, latency_ms: null, message: null },
    ...{ created_at: now, updated_at: now, last_synced_at: null },
  };
}

async function aSync({ units }: Storage, id = "sync_1") {
  for (const end of ["conn_a", "conn_b"])
    if ((await units.connection.get({ id: end, environment })) === null)
      await units.connection.create({ connection: connection(end), limit: null });
  return units.sync.create({
    ...{ id, environment, source_connection: "conn_a", destination_connection: "conn_b", now, limit: null },
    due: null,
    body: {
      ...{ name: null, source_object: "o", destination_table: "t", schedule: "manual", timezone: null, metadata: {} },
      ...{ mode: "full_refresh", primary_key: null, cursor_field: null, columns: null, mapping: null },
      ...{ on_bad_record: "quarantine", deletes: null, stall_timeout_s: null },
    },
  });
}

const start = (runId: string, id = "sync_1") => ({
  ...{ id, environment, runId, trigger: "manual" as const, fullRefresh: false, objects: null, now, limit: null },
});

test("a page of a sync's runs is found in its order: all of them are not read for it", async () => {
  const root = temporaryFolder();
  await temporaryStorage({ root });
  const database = new DatabaseSync(join(root, ".magic/magic.db"));
  onTestFinished(() => database.close());
  const plan = database.prepare("explain query plan select * from run where sync_id = ? order by id desc limit 21");
  expect(plan.all("sync_1").map(({ detail }) => detail)).toEqual(["SEARCH run USING INDEX run_listed (sync_id=?)"]);
});

describe.each(dialectsWith(postgres))("on $name", ({ name, open }) => {
  test("a NUL in a text is nobody's id; where it cannot be kept the caller is told, and what is appended goes on", async () => {
    const { units } = await open();
    const asked = units.connection.get({ id: "a\0b", environment });
    if (name === "sqlite") expect(await asked).toBeNull();
    else await expect(asked).rejects.toMatchObject({ code: "invalid_request" });
    const row = [1, "aud_1", now, "key", "k", "x.get", "a\0b", "failed", 404, "req_1", "live", "mac"];
    expect(await units.audit.append({ after: 0, rows: JSON.stringify([row]) })).toBe("appended");
  });

  test("a completed run proves both of its connections, but not one that was changed since it began", async () => {
    const storage = await open();
    const { run, connection: kept } = storage.units;
    await aSync(storage);
    await run.start(start("run_1"));
    await run.progress({ id: "run_1", progress: { started_at: now } });
    const later = "2026-01-01T00:00:01.000Z";
    const { name: called, metadata, health } = connection("conn_b");
    const body = { name: called, metadata, health };
    await kept.update({ id: "conn_b", environment, revision: 1, body, secret: null, now: later });
    await run.end({ id: "run_1", status: "completed", now: later, result: { finished_at: later } });
    const ends = await Promise.all(["conn_a", "conn_b"].map((id) => kept.get({ id, environment })));
    expect(ends).toMatchObject([
      { status: "connected", health: { status: "healthy", checked_at: later }, metadata, last_synced_at: later },
      { status: "pending", health: { status: "unknown" }, last_synced_at: later },
    ]);
  });

  test("retention of the audit log ends before the first entry that is young enough, and keeps the last of all", async () => {
    const { units } = await open();
    // The clock was days ahead at the seventh.
    const days = [1, 1, 2, 2, 3, 3, 9, 4, 4, 5];
    const rows = days.map((day, i) => {
      const at = `2026-01-0${day}T00:00:00.000Z`;
      return [i + 1, `aud_${i}`, at, "key", "k", "x.get", null, "success", 200, "req_1", "live", `mac${i + 1}`];
    });
    await units.audit.append({ after: 0, rows: JSON.stringify(rows) });
    const lastBefore = async (day: number, limit: number) => {
      let found = 0;
      for (let more = true, after = 0; more; after = found) {
        const step = await units.audit.lastBefore({ before: `2026-01-0${day}T00:00:00.000Z`, after, limit });
        found = step.last?.sequence ?? found;
        more = step.more;
      }
      return found;
    };
    for (const limit of [1, 2, 3, 6, 100])
      expect([await lastBefore(1, limit), await lastBefore(3, limit), await lastBefore(6, limit)]).toEqual([0, 4, 6]);
    await units.audit.prune({ upTo: 7, limit: 100 });
    for (const limit of [1, 2, 3, 100]) expect(await lastBefore(6, limit)).toBe(9);
  });

  test("an audit log that is listed in steps lists the same, whatever their length, filters and gaps", async () => {
    const { units } = await open();
    const sequences = [1, 2, 3, 4, 5, 6, 7, 8, 9, 500, 501, 502];
    const row = (n: number) => {
      const [who, request] = [n % 3 ? "live" : "sandbox", `req_${n % 2}`];
      return [n, `aud_${n}`, now, "key", "k", "x.get", null, "success", 200, request, who, "mac"];
    };
    await units.audit.append({ after: 0, rows: JSON.stringify(sequences.map(row)) });
    const listed = async (reach: number, query: object) => {
      const found: string[] = [];
      let from: number | undefined;
      do {
        const { rows, next } = await units.audit.look({ limit: 100, ...query, from, reach });
        found.push(...rows.map(({ id }) => id));
        from = next ?? undefined;
      } while (from !== undefined);
      return found;
    };
    for (const query of [
      ...[{}, { environment: "sandbox" }, { environment: "sandbox", identity: "k", outcome: "success" }],
      ...[
        { request_id: "req_1" },
        { after: "aud_7" },
        { before: "aud_7" },
        { before: "aud_7", environment: "sandbox" },
      ],
      ...[{ after: "aud_gone" }, { before: "aud_gone" }, { after: "aud_1" }, { before: "aud_502" }],
    ]) {
      const whole = await listed(1_000, query);
      for (const reach of [1, 3]) expect(await listed(reach, query), JSON.stringify(query)).toEqual(whole);
    }
    expect(await listed(2, { before: "aud_7", environment: "sandbox" })).toEqual(["aud_9", "aud_501"]);
    expect(await listed(2, { after: "aud_500" })).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1].map((n) => `aud_${n}`));
  });

  test("of many callers at once, no more than the limit make a connection", async () => {
    const { units } = await open();
    const made = await Promise.allSettled(
      Array.from({ length: 12 }, (_, i) => units.connection.create({ connection: connection(`conn_${i}`), limit })),
    );
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    for (const one of made)
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "limit_reached", extra: { max: 2 } });
  });

  test("a change made on an older revision is refused", async () => {
    const { units } = await open();
    await units.connection.create({ connection: connection("conn_a"), limit: null });
    const { name, health, metadata } = connection("conn_b");
    const change = { id: "conn_a", environment, revision: 1, body: { name, health, metadata }, secret: null, now };
    expect(await units.connection.update(change)).toMatchObject({ name: "conn_b", revision: 2 });
    expect(await units.connection.update(change)).toBe("stale");
    expect(await units.connection.update({ ...change, id: "conn_x" })).toBeNull();
  });

  test("a sync's next run moves with its schedule, in one transaction", async () => {
    const storage = await open();
    const { units } = storage;
    const { id, revision, ...body } = await aSync(storage);
    const change = { id, environment, body, status: null, now, limit: null };
    const times = () => units.job.times({ queue: "sync-schedule" });
    await units.sync.update({ ...change, revision, due: 500 });
    expect(await units.sync.update({ ...change, revision, due: 900 })).toBe("stale");
    expect(await times()).toEqual([{ key: id, run_at: 500 }]);
    await units.sync.update({ ...change, revision: revision + 1, status: "paused", due: null });
    expect(await times()).toEqual([]);
  });

  test("an occurrence of a schedule starts one run, whoever stood still on the way", async () => {
    const storage = await open();
    const { job, run: runs, sync } = storage.units;
    const { id, revision, ...body } = await aSync(storage);
    await sync.update({ id, environment, revision, body, status: null, due: 500, now, limit: null });
    const take = async (owner: string) => {
      const [taken] = await job.claim({
        ...{ queue: "sync-schedule", owner, now: 600, leaseMs: 0, limit: 1, atWork: [] },
      });
      return taken && { id: taken.id, owner, version: taken.version };
    };
    const occur = (runId: string, claim: Awaited<ReturnType<typeof take>>) =>
      runs.start({ ...start(runId), trigger: "schedule", ...(claim && { occurrence: { claim, next: 900 } }) });
    const [first, second] = [await take("proc_a"), await take("proc_b")];
    expect(await occur("run_1", second)).toMatchObject({ started: true });
    await runs.end({ id: "run_1", status: "completed", now });
    expect(await occur("run_2", first)).toBeNull();
    // It stands for its next time before anybody was told that it ran.
    expect(await job.times({ queue: "sync-schedule" })).toEqual([{ key: id, run_at: 900 }]);
    expect(await take("proc_a")).toBeUndefined();
    const { rows } = await runs.list({ syncId: id, page: { limit: 5 } });
    expect(rows).toMatchObject([{ id: "run_1" }]);
  });

  test("how far a sync has come follows on what its process read, else another one has gone on", async () => {
    const storage = await open();
    const { sync } = storage.units;
    await aSync(storage);
    const kept = { sync_id: "sync_1", stream: "o" };
    expect(await sync.state(kept)).toBeNull();
    const keep = (body: string, revision: number, sync_id = "sync_1") =>
      sync.keepState({ ...kept, sync_id, body, revision });
    expect(await keep("1", 0)).toBe(true);
    // The answer was lost.
    expect(await keep("1", 0)).toBe(true);
    expect(await keep("2", 0)).toBe(false);
    expect(await keep("2", 1)).toBe(true);
    expect(await sync.state(kept)).toMatchObject({ body: "2", revision: 2 });
    expect(await keep("1", 0, "sync_2")).toBe(false);
    await sync.remove({ id: "sync_1", environment });
    expect(await sync.state(kept)).toBeNull();
  });

  test("lists page both ways and filter", async () => {
    const { units } = await open();
    for (let i = 0; i < 6; i++)
      await units.connection.create({
        connection: { ...connection(`conn_${i}`), provider: i % 2 ? "mysql" : "postgres" },
        limit: null,
      });
    const ids = async (page: object, filter = {}) => {
      const { rows, more } = await units.connection.list({ environment, page: { limit: 2, ...page }, ...filter });
      return [rows.map(({ id }) => id), more];
    };
    expect(await ids({})).toEqual([["conn_5", "conn_4"], true]);
    expect(await ids({ after: "conn_2" })).toEqual([["conn_1", "conn_0"], false]);
    expect(await ids({ before: "conn_2" })).toEqual([["conn_4", "conn_3"], true]);
    expect(await ids({ limit: 5 }, { provider: "mysql", status: "pending" })).toEqual([
      ["conn_5", "conn_3", "conn_1"],
      false,
    ]);
  });

  test("of many triggers at once one starts a run, the others are answered with it", async () => {
    const storage = await open();
    const { run: runs, sync } = storage.units;
    await aSync(storage);
    const begun = await Promise.all(Array.from({ length: 10 }, (_, i) => runs.start(start(`run_${i}`))));
    expect(begun.filter((one) => one?.started)).toHaveLength(1);
    const [run = ""] = new Set(begun.map((one) => one?.run.id));
    expect(new Set(begun.map((one) => one?.run.id)).size).toBe(1);
    expect(await sync.get({ id: "sync_1", environment })).toMatchObject({
      status: "running",
      runs: 1,
      lastRun: { status: "queued" },
    });
    expect(await runs.progress({ id: run, progress: { records_read: 5 } })).toBe(true);
    const rejects = ["1", "2", "3"].map((key) => ({ key, column_name: null, reason: "r" }));
    const big = 2 ** 40;
    expect(
      await runs.end({ id: run, status: "completed", now, result: { records_synced: big }, rejects }),
    ).toMatchObject({ status: "completed", records_read: 5 });
    expect(await runs.end({ id: run, status: "failed", now })).toBeNull();
    expect(await runs.progress({ id: run, progress: {} })).toBe(false);
    expect(await sync.get({ id: "sync_1", environment })).toMatchObject({ status: "active", records_synced: big });
    const page = await runs.listRejects({ runId: run, limit: 2 });
    expect(page).toMatchObject({ rows: [{ key: "1" }, { key: "2" }], more: true });
    const [, second] = page.rows;
    const last = await runs.listRejects({ runId: run, limit: 2, after: second?.id });
    expect(last).toMatchObject({ rows: [{ key: "3" }], more: false });
    const back = await runs.listRejects({ runId: run, limit: 1, before: last.rows[0]?.id });
    expect(back).toMatchObject({ rows: [{ key: "2" }], more: true });
    await expect(runs.cancel({ id: run, environment, now })).rejects.toMatchObject({ code: "conflict" });
    expect(await sync.remove({ id: "sync_1", environment })).toMatchObject({ id: "sync_1" });
    expect(await runs.get({ id: run, environment })).toBeNull();
  });

  test("many syncs of the same connections are triggered at once while somebody reads: every run is kept", async () => {
    const storage = await open();
    const { run: runs, sync } = storage.units;
    const syncs = Array.from({ length: 40 }, (_, i) => `sync_${i}`);
    for (const id of syncs) await aSync(storage, id);
    const finish = { status: "completed" as const, now, result: { records_synced: 1 } };
    let triggering = true;
    const ends = Promise.allSettled(
      syncs.map((id) => runs.atOnce({ begin: start(`run_of_${id}`, id), finish, ordinal: 1 })),
    ).finally(() => {
      triggering = false;
    });
    while (triggering) await sync.list({ environment, page: { limit: 5 } });
    expect((await ends).filter(({ status }) => status === "rejected")).toEqual([]);
    const { rows } = await sync.list({ environment, page: { limit: 100 } });
    expect(rows.map(({ records_synced }) => records_synced)).toEqual(syncs.map(() => 1));
  });

  test("a sync's oldest runs go with their rejects, a few at a time; its sums stay", async () => {
    const storage = await open();
    await aSync(storage);
    const { run: runs, sync } = storage.units;
    const ids = Array.from({ length: 25 }, (_, i) => `run_${String(i + 1).padStart(2, "0")}`);
    const rejects = [{ key: "k", column_name: null, reason: "r" }];
    for (const id of ids) {
      await runs.start(start(id));
      await runs.end({ id, status: "completed", now, result: { records_synced: 2 }, rejects });
    }
    const left = async () => {
      const { rows } = await runs.list({ syncId: "sync_1", page: { limit: 100 } });
      return rows.map(({ id }) => id).reverse();
    };
    expect(await runs.forget({ id: "sync_1", upTo: 0 })).toBe(false);
    expect(await runs.forget({ id: "sync_2", upTo: 25 })).toBe(false);
    expect(await left()).toEqual(ids);
    expect(await runs.forget({ id: "sync_1", upTo: 22 })).toBe(true);
    expect(await left()).toEqual(ids.slice(20));
    expect(await runs.forget({ id: "sync_1", upTo: 22 })).toBe(false);
    expect(await left()).toEqual(ids.slice(22));
    const rejected = async (runId: string) => (await runs.listRejects({ runId, limit: 5 })).rows.length;
    expect([await rejected("run_22"), await rejected("run_23")]).toEqual([0, 1]);
    expect(await sync.get({ id: "sync_1", environment })).toMatchObject({ records_synced: 50, runs: 25 });
    expect(await runs.start(start("run_26"))).toMatchObject({ run: { ordinal: 26 } });
  });

  test("deleting a connection cancels the run and pauses the sync, in one unit", async () => {
    const storage = await open();
    await aSync(storage);
    await storage.units.run.start(start("run_1"));
    expect(await storage.units.connection.remove({ id: "conn_b", environment, now })).toEqual({
      paused: ["sync_1"],
      canceledRuns: ["run_1"],
    });
    expect(await storage.units.sync.get({ id: "sync_1", environment })).toMatchObject({
      status: "paused",
      lastRun: { status: "canceled" },
    });
    await expect(storage.units.run.start(start("run_2"))).rejects.toMatchObject({ code: "connection_missing" });
  });

  test("a canceled run counts what its process had committed by then", async () => {
    const storage = await open();
    await aSync(storage);
    const { run: runs, sync } = storage.units;
    await runs.start(start("run_1"));
    await runs.progress({ id: "run_1", progress: { records_read: 3, records_synced: 2 } });
    await runs.cancel({ id: "run_1", environment, now });
    const told = { id: "run_1", now, result: { records_read: 9, records_synced: 8, records_rejected: 1, bytes: 90 } };
    expect(await runs.end({ ...told, status: "completed" })).toBeNull();
    // Of what it failed by before it had counted anything nothing is known.
    await runs.end({ id: "run_1", status: "failed", now, result: { errors: [] } });
    // An attempt that another daemon had taken over from comes to an end, too.
    await runs.end({ ...told, status: "canceled", result: { ...told.result, records_read: 5, records_synced: 4 } });
    const counted = { status: "canceled", records_read: 9, records_synced: 8, records_rejected: 1, bytes: 90 };
    expect(await runs.get({ id: "run_1", environment })).toMatchObject({ ...counted, finished_at: now });
    expect(await sync.get({ id: "sync_1", environment })).toMatchObject({ status: "active", records_synced: 8 });
  });

  test("an Idempotency-Key of another replica is under way while that one lives, and unknown after", async () => {
    const { storage, die } = mortal(await open());
    const { units, dialect } = storage;
    let time = Date.parse(now);
    const clock = { now: () => time, monotonic: () => time };
    const sealer = { seal: String, open: String, digest: String };
    const daemon = (stands: Storage["dialect"]) => {
      const presence = createPresence({ units, dialect: stands }, clock);
      const idempotency = createIdempotency({ units: units.idempotency, sealer, clock, presence });
      onTestFinished(() => [presence, idempotency].forEach((each) => void each.close()));
      return idempotency;
    };
    const [one, two, alone] = [daemon("postgres"), daemon("postgres"), daemon("sqlite")];
    const reserved = await one.begin("key k live", "a", "f");
    expect(reserved).toMatchObject({ id: expect.any(String) });
    await alone.begin("key k live", "b", "f");
    await expect(two.begin("key k live", "a", "f")).rejects.toMatchObject({ code: "idempotency_in_progress" });
    await expect(two.begin("key k live", "b", "f")).rejects.toMatchObject({ code: "idempotency_outcome_unknown" });
    // Clocks that differ by hours are no death: by the database's, one has another minute.
    time += dialect === "postgres" ? 10_000_000 : 60_000;
    if (dialect === "postgres") {
      await expect(two.begin("key k live", "a", "f")).rejects.toMatchObject({ code: "idempotency_in_progress" });
      await die();
    }
    await expect(two.begin("key k live", "a", "f")).rejects.toMatchObject({ code: "idempotency_outcome_unknown" });
    await expect(one.begin("key k live", "a", "f")).rejects.toMatchObject({ code: "idempotency_in_progress" });
  });

  test("a webhook that is gone is delivered nothing, and leaves nothing that would be looked at for ever", async () => {
    const { units } = await open();
    const event = { environment, type: "webhook.test", data: {}, now, webhookId: "wh_1", eventId: "evt_1" };
    expect(await units.webhook.deliver(event)).toBeNull();
    expect(await units.webhook.nextAttempt({ webhookId: "wh_1" })).toBeNull();
    expect(await units.job.pending()).toBe(false);
  });

  test("deliveries that are too old or too many go in batches, pending ones never, failed ones by age alone", async () => {
    const { units } = await open();
    const webhook = {
      ...{ id: "wh_1", environment, url: "https://a", events: [], status: "enabled" as const, description: null },
      ...{ secrets: "", succeeded_at: null, revision: 1, created_at: now, updated_at: now },
    };
    for (const id of ["wh_1", "wh_2"]) await units.webhook.create({ webhook: { ...webhook, id } });
    const day = (n: number) => `2026-01-${String(n).padStart(2, "0")}T00:00:00.000Z`;
    const made = new Map<string, string>();
    const make = async (n: number, status: "pending" | "failed" | "succeeded", webhookId = "wh_1") => {
      const event = { environment, type: "test", data: {}, now: day(n), webhookId, eventId: `evt_${n}` };
      const { id } = (await units.webhook.deliver(event)) as DeliveryRecord;
      const end = { attempt: null, nextAttemptAt: null, disable: null, now: day(n) };
      if (status !== "pending") await units.webhook.recordAttempt({ id, queuedAt: day(n), status, ...end });
      made.set(id, `${n} ${status}`);
      return id;
    };
    const redelivered = await make(1, "succeeded");
    await units.webhook.redeliver({ id: redelivered, webhookId: "wh_1", environment, now: day(20) });
    await units.webhook.recordAttempt({
      queuedAt: day(20),
      ...{ id: redelivered, status: "failed", attempt: null, nextAttemptAt: null, disable: null, now: day(20) },
    });
    for (const n of [2, 3, 4, 12, 13, 14, 15])
      await make(n, n === 3 ? "pending" : n === 4 || n === 12 ? "failed" : "succeeded");
    await make(2, "succeeded", "wh_2");
    expect((await units.webhook.ids()).sort()).toEqual(["wh_1", "wh_2"]);
    const prune = async (count: number) => {
      let [removed, batches] = [0, 0];
      for (let after: string | null = ""; after !== null; batches++) {
        const options = { webhookId: "wh_1", queuedBefore: day(10), count, after, limit: 2 };
        const found: { removed: number; next: string | null } = await units.webhook.pruneDeliveries(options);
        removed += found.removed;
        after = found.next;
      }
      const { rows } = await units.webhook.listDeliveries({ webhookId: "wh_1", page: { limit: 50 } });
      return { removed, batches, left: rows.map(({ id }) => made.get(id)) };
    };
    const kept = ["15 succeeded", "14 succeeded", "13 succeeded", "12 failed", "3 pending", "1 succeeded"];
    expect(await prune(100)).toEqual({ removed: 2, batches: 3, left: kept });
    expect(await prune(2)).toMatchObject({ removed: 1, left: kept.filter((each) => !each.startsWith("13")) });
    expect(await prune(2)).toMatchObject({ removed: 0 });
    const other = await units.webhook.listDeliveries({ webhookId: "wh_2", page: { limit: 50 } });
    expect(other.rows).toHaveLength(1);

    // Before a webhook goes with the rest, those that ended go in steps: of its own environment, and none of another webhook's.
    const removeEnded = (of: "live" | "sandbox") =>
      units.webhook.removeEnded({ id: "wh_1", environment: of, limit: 3 });
    expect(await removeEnded("sandbox")).toBe(false);
    expect([await removeEnded("live"), await removeEnded("live")]).toEqual([true, false]);
    expect((await prune(100)).left).toEqual(["3 pending"]);
    expect(await units.webhook.remove({ id: "wh_1", environment })).toBe(true);
    expect((await prune(100)).left).toEqual([]);
    expect((await units.webhook.listDeliveries({ webhookId: "wh_2", page: { limit: 50 } })).rows).toHaveLength(1);
  });

  test("the end of a live run becomes deliveries to those who want it, in the same unit", async () => {
    const storage = await open();
    const { units } = storage;
    const webhook = (id: string, events: string[], status: "enabled" | "disabled") => ({
      webhook: {
        id,
        environment,
        url: "https://x.example",
        events,
        status,
        description: null,
        secrets: "",
        succeeded_at: null,
        revision: 1,
        created_at: now,
        updated_at: now,
      },
    });
    await units.webhook.create(webhook("wh_1", ["sync.completed", "data.changed"], "enabled"));
    await units.webhook.create(webhook("wh_2", ["sync.failed"], "enabled"));
    await units.webhook.create(webhook("wh_3", ["sync.completed"], "disabled"));
    await aSync(storage);
    await units.run.start(start("run_1"));
    await units.run.end({ id: "run_1", status: "completed", now, result: { records_synced: 3 } });
    const of = async (webhookId: string) =>
      (await units.webhook.listDeliveries({ webhookId, page: { limit: 10 } })).rows;
    expect((await of("wh_1")).map(({ event_type }) => event_type)).toEqual(["data.changed", "sync.completed"]);
    expect([...(await of("wh_2")), ...(await of("wh_3"))]).toEqual([]);
    const claim = { queue: "webhook", owner: "w", now: Date.parse(now), leaseMs: 1000, limit: 10, atWork: [] };
    expect(await units.job.claim(claim)).toMatchObject([{ key: "wh_1" }]);
    const reach = { now, ahead: "2026-01-02T00:00:00.000Z" };
    const due = (except: string[]) => units.webhook.dueDeliveries({ webhookId: "wh_1", ...reach, limit: 10, except });
    const [first] = await due([]);
    expect(await due([first?.id ?? ""])).toHaveLength(1);
    // Put when the clock stood a year ahead.
    await units.webhook.defer({ id: first?.id ?? "", until: "2027-01-01T00:00:00.000Z" });
    expect(await due([])).toHaveLength(2);
    const [delivery] = await of("wh_1");
    const attempt = { at: now, response_code: 500, duration_ms: 1, error: "answered 500" };
    const failed = {
      id: delivery?.id ?? "",
      queuedAt: delivery?.queued_at ?? "",
      status: "failed" as const,
      attempt,
      nextAttemptAt: null,
      disable: "exhausted" as const,
      now,
    };
    // Asked for once more while the attempt was under way: it is still to come.
    expect(await units.webhook.recordAttempt({ ...failed, queuedAt: "2025-01-01T00:00:00.000Z" })).toBe(false);
    expect((await of("wh_1"))[0]).toMatchObject({ status: "pending", attempts: [attempt], attempts_before: 1 });
    expect(await units.webhook.recordAttempt(failed)).toBe(true);
    expect(await units.webhook.get({ id: "wh_1", environment })).toMatchObject({ status: "disabled" });
    expect(await units.webhook.recordAttempt(failed)).toBe(false);
    // Another daemon has delivered it while the one that began this attempt was frozen.
    expect(await units.webhook.recordAttempt({ ...failed, status: "succeeded" })).toBe(false);
    await units.webhook.recordAttempt({ ...failed, status: "pending", nextAttemptAt: now });
    expect((await of("wh_1"))[0]).toMatchObject({ status: "succeeded", next_attempt_at: null });
  });

  test("a job is claimed by one of many, again when its lease is over, and a key names one", async () => {
    const { units, dialect } = await open();
    const { job } = units;
    const put = (id: string, key: string | null) => job.put({ id, queue: "q", key, payload: `"${id}"`, runAt: 100 });
    for (let i = 0; i < 8; i++) await put(`job_${i}`, null);
    await put("job_k1", "k");
    await put("job_k2", "k");
    const claims = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        job.claim({ queue: "q", owner: `w${i}`, now: 200, leaseMs: 60_000, limit: 3, atWork: [] }),
      ),
    );
    const ids = claims.flat().map(({ id }) => id);
    expect(ids.length).toBe(9);
    expect(new Set(ids).size).toBe(9);
    expect(claims.flat().find(({ key }) => key === "k")).toMatchObject({ payload: '"job_k2"' });
    // Daemons that share a database go by its clock: one whose own is ahead takes nothing from the others.
    const now = dialect === "postgres" ? 9_000_000 : 240;
    expect(await job.claim({ queue: "q", owner: "late", now, leaseMs: 50, limit: 9, atWork: [] })).toEqual([]);
    for (const [at, each] of claims.entries())
      for (const { id } of each) await job.extend({ id, owner: `w${at}`, now: 240, leaseMs: -1 });
    expect(await job.claim({ queue: "q", owner: "late", now: 700, leaseMs: 50, limit: 9, atWork: [] })).toHaveLength(9);
    expect(await job.extend({ id: "job_0", owner: "late", now: 700, leaseMs: 50 })).toBe(true);
    expect(await job.extend({ id: "job_0", owner: "w0", now: 700, leaseMs: 50 })).toBe(false);
    await job.releaseOthers({ owner: "new" });
    expect(await job.nextDue({ queue: "q" })).toBe(100);
  });

  test("an OAuth state is taken by one of many, and not after its time", async () => {
    const { oauth } = (await open()).units;
    await oauth.put({ state: { id: "a", payload: "p", expires_at: 100 }, now: 0 });
    const taken = await Promise.all(Array.from({ length: 8 }, () => oauth.take({ id: "a", now: 50 })));
    expect(taken.filter((one) => one === "p")).toHaveLength(1);
    await oauth.put({ state: { id: "b", payload: "p", expires_at: 100 }, now: 0 });
    expect(await oauth.take({ id: "b", now: 100 })).toBeNull();
  });
});
