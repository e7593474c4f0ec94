import { expect, onTestFinished, test, vi } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { createConnections } from "#daemon/integrations/connections/connections.ts";
import type { RunTask } from "#daemon/integrations/execution.ts";
import { createLiveRuns, type LiveRunsOptions } from "#daemon/integrations/syncs/live-runs.ts";
import type { Job, Outcome } from "#daemon/jobs/queue.ts";
import { silentLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";

/**
 * Live runs over a state that is away when it is first asked that (absent: never); answers how to do a run's job, and how it ended.
 * `fault`: the code of its failure; `records`: read by then, told every six seconds; `places`: kept on the way, of which another process
 * overtakes the second. `jumps`: by how much (ms) the clock is set on while it works for two seconds.
 */
function overState(
  away?: "connection.get" | "run.end" | "sync.keepState",
  fault?: string,
  records: readonly number[] = [],
  places: readonly unknown[] = [],
  jumps?: number,
) {
  const clock = { ms: Date.parse("2026-11-23T10:00:00Z"), lasted: 5000 };
  const ended: unknown[] = [];
  const asked: unknown[] = [];
  let faults = 1;
  const unless = <T>(name: string, answer: T): T => {
    if (name === away && faults-- > 0) throw new MagicError("storage_unavailable", "Postgres restarts");
    return answer;
  };
  const units = {
    run: {
      get: async () => ({ id: "run_1", sync_id: "sync_1", started_at: null }),
      progress: async () => true,
      end: async (end: object) => {
        asked.push(end);
        unless("run.end", null);
        ended.push(end);
        return null;
      },
    },
    sync: {
      get: async () => ({ id: "sync_1", source_object: "o", source_connection: "a", destination_connection: "b" }),
      state: async () => null,
      keepState: async (kept: { revision: number }) =>
        unless("sync.keepState", asked.push(kept) && kept.revision === 0),
    },
    connection: { get: async () => unless("connection.get", {}) },
  };
  const handlers = new Map<string, (job: Job<unknown>) => Promise<Outcome>>();
  const error = fault === undefined ? null : { code: fault, message: fault };
  const outcome = {
    status: error ? "failed" : "completed",
    records_read: 7,
    records_synced: 7,
    records_rejected: 0,
    bytes: 70,
  };
  createLiveRuns({
    storage: { units } as never,
    jobs: { define: (name: string, { handle }: { handle: never }) => void handlers.set(name, handle) } as never,
    execution: {
      async run({ state }: RunTask, onProgress: (progress: object) => void) {
        clock.ms += 2000 + (jumps ?? 0);
        clock.lasted += 2000;
        for (const place of places) await state.save(place).catch(() => {});
        for (const records_read of records) {
          onProgress({ records_read, bytes: 0, waiting_for: "rows" });
          await vi.advanceTimersByTimeAsync(6000);
        }
        return { ...outcome, error, warnings: [], rejects: [], proof: null };
      },
    } as never,
    secrets: { open: (connection: unknown) => connection } as never,
    fresh: async (connection) => connection,
    doubt: () => new Promise(() => {}),
    clock: jumps === undefined ? systemClock : { now: () => clock.ms, monotonic: () => clock.lasted },
    logger: silentLogger,
    onEvents: () => undefined,
  } satisfies LiveRunsOptions);
  const { signal } = new AbortController();
  const rest = vi.fn<Job<unknown>["rest"]>();
  const claim = { id: "job_1", owner: "me", version: 0 };
  const claimed = { id: claim.id, key: null, payload: { run: "run_1" }, claim };
  const job = (attempt: number) => handlers.get("sync-run")?.({ ...claimed, attempt, signal, rest });
  return { job, ended, asked, rest };
}

test("a run that has moved its records is completed, though the state is away when it ends", async () => {
  const { job, ended, asked } = overState("run.end");
  await job(1);
  // It ended when it ended, however long nobody could be told.
  expect(asked).toEqual([ended[0], ended[0]]);
  expect(ended).toMatchObject([{ status: "completed", result: { records_synced: 7 } }]);
});

test.each([86_400_000, -3_600_000])("a clock that is set by %i ms makes a run neither slow nor fast", async (jumps) => {
  const { job, ended } = overState(undefined, undefined, [], [], jumps);
  await job(1);
  expect(ended).toMatchObject([{ result: { throughput: { records_per_s: 4, bytes_per_s: 35 } } }]);
});

test("how far a run has come is kept again where the state was away", async () => {
  const { job, ended, asked } = overState("sync.keepState", undefined, [], [{ cursor: "1" }]);
  await job(1);
  const kept = { sync_id: "sync_1", stream: "o", revision: 0, body: '{"cursor":"1"}' };
  expect(asked.slice(0, 2)).toEqual([kept, kept]);
  expect(ended).toMatchObject([{ status: "completed" }]);
});

test("a run that another daemon has gone on with is that one's to end", async () => {
  const { job, ended } = overState(undefined, "conflict", [], ["1", "2"]);
  expect(await job(1)).toMatchObject({ runAgainAt: expect.any(Number) });
  expect(ended).toEqual([]);
});

test("a run does not fail for a state that is away when it begins: it begins again", async () => {
  const { job, ended } = overState("connection.get");
  await expect(job(1)).rejects.toMatchObject({ code: "storage_unavailable" });
  await job(2);
  expect(ended).toMatchObject([{ status: "completed" }]);
});

test("a run that was refused its credentials has left its place when they are tried", async () => {
  const { job, ended } = overState(undefined, "credentials_rejected");
  await job(1);
  expect(ended).toMatchObject([{ status: "failed" }]);
});

test("a run that makes no progress for ten seconds leaves its place, until it goes on", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { job, rest, ended } = overState(undefined, undefined, [1, 2, 3, 3, 3, 4, 5]);
  await job(1);
  expect(rest.mock.calls.filter(([is], at, all) => is !== (all[at - 1]?.[0] ?? false))).toEqual([[true], [false]]);
  expect(ended).toMatchObject([{ status: "completed" }]);
});

test("a run goes on however often its daemon was killed, but for one that seems to do it itself", async () => {
  const { job, ended } = overState();
  await job(200);
  await job(201);
  expect(ended).toMatchObject([
    { status: "completed" },
    { status: "failed", result: { errors: [{ code: "worker_lost" }] } },
  ]);
});

test("runs that are refused the same credentials together have them tried once", async () => {
  const end = { id: "conn_1", environment: "live", status: "connected" };
  const kept: unknown[] = [];
  const connection = { get: async () => end, setHealth: async (found: unknown) => kept.push(found) };
  const check = vi.fn(async () => ({ status: "failed" }));
  const connections = createConnections({
    ...{ storage: { units: { connection } }, execution: { check }, clock: systemClock, onEvents: () => undefined },
    secrets: { open: () => end, read: () => ({ config: {}, credentials: {} }) },
    fresh: async () => end,
  } as never);
  const { signal } = new AbortController();
  await Promise.all([1, 2, 3].map(() => connections.doubt([end.id], signal)));
  expect([check.mock.calls.length, kept.length]).toEqual([1, 1]);
  await connections.doubt([end.id], signal);
  expect(check).toHaveBeenCalledTimes(2);
});
