import { expect, onTestFinished, test, vi } from "vitest";
import { newBody, patchedBody } from "#daemon/integrations/syncs/body.ts";
import { nextDue } from "#daemon/integrations/syncs/schedule.ts";
import { createSchedules } from "#daemon/integrations/syncs/schedules.ts";
import type { Job, Outcome } from "#daemon/jobs/queue.ts";
import { silentLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";

test("a cron schedule is due by its own zone, through the change of the clocks, and by UTC without one", () => {
  const before = process.env["TZ"];
  process.env["TZ"] = "Asia/Tokyo";
  try {
    const due = (timezone: string | null, after: string) =>
      new Date(nextDue({ schedule: "30 2 * * *", timezone }, Date.parse(after)) ?? 0).toISOString();
    expect(due(null, "2026-01-10T00:00:00Z")).toBe("2026-01-10T02:30:00.000Z");
    expect(due("Europe/Berlin", "2026-01-10T00:00:00Z")).toBe("2026-01-10T01:30:00.000Z");
    expect(due("Europe/Berlin", "2026-07-10T00:00:00Z")).toBe("2026-07-10T00:30:00.000Z");
    // 02:30 does not exist on that day: it is caught up when the clock has moved.
    expect(due("Europe/Berlin", "2026-03-29T00:00:00Z") >= "2026-03-29T01:00:00.000Z").toBe(true);
    expect(nextDue({ schedule: "manual", timezone: null }, 0)).toBeNull();
  } finally {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  }
});

test("a sync whose schedule has come to its end can still be changed otherwise", async () => {
  const ends = { source: { connection: "c", object: "o" }, destination: { connection: "c", table: "t" } };
  const over = { ...(await newBody(ends, async () => [])), schedule: "0 0 0 1 1 * 2020" };
  expect(patchedBody(over, { name: "n" })).toMatchObject({ name: "n", schedule: over.schedule });
  expect(() => patchedBody(over, { timezone: "Europe/Berlin" })).toThrow(
    expect.objectContaining({ code: "validation_failed" }),
  );
});

test("a mode that is taken away is the one that a new sync of that schedule has", async () => {
  const ends = { source: { connection: "c", object: "o" }, destination: { connection: "c", table: "t" } };
  const made = await newBody({ ...ends, mode: "incremental" }, async () => []);
  expect(patchedBody(made, { mode: null }).mode).toBe("full_refresh");
  expect(patchedBody(made, { mode: null, schedule: "realtime" }).mode).toBe("cdc");
  expect(patchedBody(made, { mode: null, schedule: "realtime", cursor_field: "n" }).mode).toBe("incremental");
});

test("a schedule survives a clock that stood years ahead, and a process that died before it was put", async () => {
  const [root, home] = [temporaryFolder(), temporaryFolder()];
  const at = (ms: number) => ({ root, env: { MAGIC_HOME: home }, clock: { now: () => ms, monotonic: () => 0 } });
  const [right, wrong] = [Date.parse("2026-05-04T10:30:00Z"), Date.parse("2031-05-04T10:30:00Z")];
  const live = { live: true };
  const ahead = await startDaemon(at(wrong));
  const { id: connection } = (await ahead.call("POST", "/v1/connections", { provider: "csv" }, live)).body;
  const ends = { source: { connection, object: "o" }, destination: { connection, table: "t" } };
  const make = async (schedule: string) =>
    (await ahead.call("POST", "/v1/syncs", { ...ends, schedule }, live)).body.id as string;
  const [hourly, lost, manual] = [await make("0 * * * *"), await make("15 * * * *"), await make("0 * * * *")];
  const { units } = ahead.app.storage;
  await units.job.cancel({ queue: "sync-schedule", key: lost });
  await ahead.call("PATCH", `/v1/syncs/${manual}`, { schedule: "manual" }, live);
  await ahead.close();
  const now = await startDaemon(at(right));
  const due = (await now.app.storage.units.job.times({ queue: "sync-schedule" })).map(({ key, run_at }) => [
    key,
    run_at,
  ]);
  expect(due.sort()).toEqual([
    [hourly, Date.parse("2026-05-04T11:00:00Z")],
    [lost, Date.parse("2026-05-04T11:15:00Z")],
  ]);
});

test("a clock that jumps ahead and back between two looks keeps no schedule waiting", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const right = Date.parse("2026-05-04T10:30:00Z");
  const clock = { ms: right, now: () => clock.ms, monotonic: () => 0 };
  const daemon = await startDaemon({ clock });
  const call = (method: string, path: string, body: object) => daemon.call(method, path, body, { live: true });
  const { id: connection } = (await call("POST", "/v1/connections", { provider: "csv" })).body;
  const ends = { source: { connection, object: "o" }, destination: { connection, table: "t" } };
  await call("POST", "/v1/syncs", { ...ends, schedule: "0 * * * *" });
  const { job } = daemon.app.storage.units;
  const due = async () =>
    (await job.times({ queue: "sync-schedule" })).map(({ run_at }) => new Date(run_at).toISOString());
  const next = ["2026-05-04T11:00:00.000Z"];
  expect(await due()).toEqual(next);
  clock.ms = Date.parse("2031-05-04T10:30:00Z");
  // Whoever puts a job wakes the queue.
  await call("POST", "/v1/syncs", { ...ends, schedule: "manual" });
  await vi.waitFor(async () => expect(await due()).toEqual(["2031-05-04T11:00:00.000Z"]), 5000);
  clock.ms = right;
  vi.advanceTimersByTime(30_000);
  await vi.waitFor(async () => expect(await due()).toEqual(next), 5000);
});

test("an occurrence that is taken as the daemon stops stays due", async () => {
  let handle: (job: Job<unknown>) => Promise<Outcome> = async () => undefined;
  createSchedules({
    storage: { units: { sync: { get: async () => ({ status: "active", schedule: "realtime" }) } } } as never,
    jobs: { define: (_name: string, queue: { handle: typeof handle }) => (handle = queue.handle) } as never,
    ...{ clock: systemClock, logger: silentLogger, onStarted() {} },
  });
  const claim = { id: "job_1", owner: "me", version: 0 };
  const job = { id: claim.id, key: "sync_1", payload: { sync: "sync_1" }, attempt: 1, claim, rest() {} };
  expect(await handle({ ...job, signal: AbortSignal.abort() })).toEqual({ runAgainAt: expect.any(Number) });
});
