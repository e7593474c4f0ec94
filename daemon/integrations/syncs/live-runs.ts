// Live runs: started from the durable queue, followed, ended. What a run does is `SyncExecution`'s.
import { EventEmitter } from "node:events";
import { isMagicError } from "#contract/errors.ts";
import type { SyncOutcome, SyncProgress } from "#contract/sync.ts";
import type { Jobs } from "#daemon/jobs/jobs.ts";
import type { Job, Outcome } from "#daemon/jobs/queue.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import type { RunBody, RunProblem, SyncRecord } from "#daemon/storage/tables/sync.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { pause } from "#shared/abort.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { redactText } from "#shared/redact.ts";
import { aheadOf } from "#shared/sync-progress.ts";
import type { ConnectionSecrets } from "../connections/secret.ts";
import type { RunTask, SyncExecution } from "../execution.ts";
import { createKeptState } from "./kept-state.ts";
import { createSchedules, type Scheduled } from "./schedules.ts";

export interface LiveRuns {
  /** Sees to it that every schedule has its next run, now and whenever the clock is set back. */
  start(): Promise<void>;
  close(): void;
  /** Takes up what a unit has put into the queues. */
  wake(): void;
  /** When the sync's next run is due (ms since the epoch); null: never, or not by the clock. */
  dueAt(sync: Scheduled): number | null;
  /** Ends work under way for runs that are ended already. */
  stop(runIds: readonly string[]): void;
  /** Settles when the run ends here or this daemon lets go of it, or after so many milliseconds. */
  ended(runId: string, withinMs: number): Promise<void>;
  /** Ends what goes on of a sync that is gone. */
  removed(sync: SyncRecord): Promise<void>;
}

export interface LiveRunsOptions {
  readonly storage: Storage;
  readonly jobs: Jobs;
  readonly execution: SyncExecution;
  readonly secrets: ConnectionSecrets;
  /** With a fresh access token, where it has one. */
  readonly fresh: (connection: ConnectionRecord) => Promise<ConnectionRecord>;
  /** A run was refused its credentials; which of the connections' they were only a test can tell. */
  readonly doubt: (connections: readonly string[], signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Events may have been put into the queue. */
  readonly onEvents: () => void;
}

const PROGRESS_EVERY_MS = 1000;
// Who has made no progress for so long leaves its place: a server that hangs, or asks for patience, holds up its own runs only.
const STILL_MS = 10_000;
// A run that took the daemon down with it so often will not be tried again. So many, for most daemons that are killed are so by others.
const MAX_ATTEMPTS = 200;
// How long at the most until it is tried again to store how far a run has come, or how it ended.
const LONGEST_PAUSE_MS = 10_000;
// How long the tests of a failed run's connections may take.
const DOUBT_MS = 25_000;

export function createLiveRuns(options: LiveRunsOptions): LiveRuns {
  const { storage, jobs, execution, secrets, fresh, doubt, clock, logger, onEvents } = options;
  const { units } = storage;
  const underWay = new Map<string, AbortController>();
  const endings = new EventEmitter().setMaxListeners(0);
  const runs = jobs.define<{ run: string }>("sync-run", {
    ...{ concurrency: 8, resting: 24, aheadMs: () => 0 },
    handle: (job) => handleRun(job).finally(() => endings.emit(job.payload.run)),
  });
  const schedules = createSchedules({ storage, jobs, clock, logger, onStarted: () => runs.wake() });
  const now = (): string => rfc3339(clock.now());

  return {
    start: schedules.start,
    close: schedules.close,
    dueAt: schedules.dueAt,

    wake() {
      runs.wake();
      schedules.wake();
    },

    stop(runIds) {
      for (const id of runIds) {
        underWay.get(id)?.abort();
        endings.emit(id);
      }
    },

    ended: (id, withinMs) =>
      new Promise((resolve) => {
        const settle = () => {
          clearTimeout(timer);
          endings.off(id, settle);
          resolve();
        };
        const timer = setTimeout(settle, withinMs).unref();
        endings.on(id, settle);
      }),

    async removed(sync) {
      if (sync.environment !== "live") return;
      await schedules.cancel(sync.id);
      if (sync.last_run !== null) underWay.get(sync.last_run)?.abort();
    },
  };

  async function handleRun({ payload, attempt, signal, rest }: Job<{ run: string }>): Promise<Outcome> {
    const run = await units.run.get({ id: payload.run, environment: "live" });
    const sync = run && (await units.sync.get({ id: run.sync_id, environment: "live" }));
    if (run === null || sync === null) return undefined;
    const started_at = run.started_at ?? now();
    // A run that goes on here took its time before, too.
    const begun = clock.monotonic() - Math.max(0, clock.now() - Date.parse(started_at));
    if (!(await units.run.progress({ id: run.id, progress: { started_at, waiting_for: "its worker" } })))
      return undefined;
    if (attempt > MAX_ATTEMPTS) {
      await end(
        run.id,
        failed({ code: "worker_lost", message: `the run was begun ${MAX_ATTEMPTS} times and never ended` }),
      );
      return undefined;
    }
    const stopped = new AbortController();
    underWay.set(run.id, stopped);
    const still = setInterval(() => rest(true), STILL_MS).unref();
    const moves = () => {
      rest(false);
      still.refresh();
    };
    try {
      const ends = await openEnds(sync);
      if (ends === null) return undefined;
      const follow = followProgress(run.id, begun, stopped, moves);
      const ending = AbortSignal.any([signal, stopped.signal]);
      const state = createKeptState(units.sync, sync, (work) => whileAway(work, run.id, ending));
      const outcome = await execution.run({ run, sync, state, ...ends }, follow, ending);
      // The daemon is stopping: the run goes on after its next start. Or it is another daemon's, which tells its end.
      if ((signal.aborted && outcome.status === "canceled") || state.overtaken()) return { runAgainAt: clock.now() };
      const { records_read, records_synced, records_rejected, bytes } = outcome;
      const throughput = rates(records_synced, bytes, clock.monotonic() - begun);
      const counts = { records_read, records_synced, records_rejected, bytes, throughput };
      const finished = clock.now();
      await whileAway(() => end(run.id, { ...outcome, counts }, finished), run.id, signal);
      // A test may take long: the run's place is free for the next one meanwhile.
      if (outcome.error?.code === "credentials_rejected") void doubtEnds(sync, signal);
    } catch (error) {
      if (signal.aborted) return { runAgainAt: clock.now() };
      if (isAway(error) && attempt < MAX_ATTEMPTS) throw error;
      await end(run.id, failed(describe(error)));
    } finally {
      clearInterval(still);
      underWay.delete(run.id);
    }
    return undefined;
  }

  // What was moved stands in the destination: that the store is away for a while must not make a failure of it.
  async function whileAway<T>(work: () => Promise<T>, run: string, signal: AbortSignal): Promise<T> {
    for (let pauseMs = 500; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS))
      try {
        return await work();
      } catch (error) {
        if (!isAway(error)) throw error;
        logger.warn("sync.state_away", { run, detail: describe(error).message });
        if (!(await pause(pauseMs, signal))) throw error;
      }
  }

  async function doubtEnds({ id, source_connection, destination_connection }: SyncRecord, signal: AbortSignal) {
    const soon = AbortSignal.any([signal, AbortSignal.timeout(DOUBT_MS)]);
    await doubt([source_connection, destination_connection], soon).catch((error) =>
      logger.warn("sync.test_failed", { sync: id, detail: describe(error).message }),
    );
  }

  async function openEnds(sync: SyncRecord): Promise<Pick<RunTask, "source" | "destination"> | null> {
    const get = (id: string) => units.connection.get({ id, environment: sync.environment });
    const [source, destination] = await Promise.all([get(sync.source_connection), get(sync.destination_connection)]);
    if (source === null || destination === null) return null;
    return { source: secrets.open(await fresh(source)), destination: secrets.open(await fresh(destination)) };
  }

  // At most one write a second; a run that was ended meanwhile (canceled, paused, deleted) is told to stop.
  function followProgress(
    id: string,
    begun: number,
    stopped: AbortController,
    moves: () => void,
  ): (progress: SyncProgress) => void {
    let next = 0;
    let place = "";
    return (progress) => {
      const { waiting_for, records_read, bytes } = progress;
      const reached = [waiting_for, records_read, bytes].join();
      if (reached !== place) moves();
      place = reached;
      if (clock.monotonic() < next) return;
      next = clock.monotonic() + PROGRESS_EVERY_MS;
      const lasted = clock.monotonic() - begun;
      units.run
        .progress({
          id,
          progress: {
            records_read: progress.records_read,
            records_synced: progress.records_written,
            records_rejected: progress.records_rejected,
            bytes: progress.bytes,
            waiting_for: [progress.waiting_for, aheadOf(progress, lasted / 1000)].filter(Boolean).join("; "),
            throughput: rates(progress.records_read, progress.bytes, lasted),
          },
        })
        .then((goes) => goes || stopped.abort())
        .catch((error) => logger.warn("sync.progress_failed", { run: id, detail: String(error) }));
    };
  }

  async function end(id: string, outcome: RunEnd, finished = clock.now()): Promise<void> {
    const result: Partial<RunBody> = {
      finished_at: rfc3339(finished),
      ...outcome.counts,
      errors: outcome.error === null ? [] : [told(outcome.error)],
      warnings: outcome.warnings.map(told),
      proof: outcome.proof,
    };
    const rejects = outcome.rejects.map(({ key, column, reason }) => ({
      key,
      column_name: column,
      reason: redactText(reason),
    }));
    const { status, changed = false } = outcome;
    const run = await units.run.end({ id, status, now: rfc3339(finished), result, rejects, changed });
    if (run !== null) logger.info("sync.run_ended", { run: id, sync: run.sync_id, status: run.status });
    endings.emit(id);
    onEvents();
  }
}

interface RunEnd {
  readonly status: "completed" | "failed" | "canceled";
  readonly counts?: Pick<RunBody, "records_read" | "records_synced" | "records_rejected" | "bytes" | "throughput">;
  readonly error: RunProblem | null;
  readonly warnings: readonly RunProblem[];
  readonly rejects: SyncOutcome["rejects"];
  readonly proof: SyncOutcome["proof"] | null;
  readonly changed?: boolean;
}

/** Whether it is the daemon's own state that cannot be had for now. */
function isAway(error: unknown): boolean {
  return isMagicError(error) && (error.code === "storage_unavailable" || error.code === "storage_full");
}

function failed(error: RunProblem): RunEnd {
  return { status: "failed", error, warnings: [], rejects: [], proof: null };
}

function told({ code, message }: RunProblem): RunProblem {
  return { code, message: redactText(message).slice(0, 4000) };
}

function describe(error: unknown): RunProblem {
  if (isMagicError(error)) return { code: error.code, message: error.message };
  return { code: "internal", message: error instanceof Error ? error.message : String(error) };
}

function rates(records: number, bytes: number, ms: number): RunBody["throughput"] {
  const seconds = Math.max(1, ms) / 1000;
  return { records_per_s: Math.round(records / seconds), bytes_per_s: Math.round(bytes / seconds) };
}
