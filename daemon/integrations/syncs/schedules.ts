// The runs of live syncs that are due by the clock, in the durable queue: one of each sync, put anew where the clock was set.
import { isMagicError } from "#contract/errors.ts";
import type { Jobs } from "#daemon/jobs/jobs.ts";
import type { Job, Outcome } from "#daemon/jobs/queue.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { SyncRecord } from "#daemon/storage/tables/sync.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { nextDue } from "./schedule.ts";

export type Scheduled = Pick<SyncRecord, "environment" | "status" | "schedule" | "timezone">;

export interface Schedules {
  /** Sees to it that every schedule has its next run, now and whenever the clock is set back. */
  start(): Promise<void>;
  close(): void;
  /** Takes up what a unit has put into the queue. */
  wake(): void;
  /** When the sync's next run is due (ms since the epoch); null: never, or not by the clock. */
  dueAt(sync: Scheduled): number | null;
  /** Takes the run of a sync that is gone away. */
  cancel(sync: string): Promise<void>;
}

// A realtime sync whose run has ended is looked after this often.
const REALTIME_PAUSE_MS = 5_000;
const CLOCK_LOOK_MS = 30_000;
// What a clock is set right by, and those of daemons on one database differ by: what one has just run must not look late to another.
const CLOCK_SLACK_MS = 60_000;

export function createSchedules(options: {
  readonly storage: Storage;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A run was put into its queue. */
  readonly onStarted: () => void;
}): Schedules {
  const { jobs, clock, logger, onStarted } = options;
  const { units } = options.storage;
  const schedules = jobs.define<{ sync: string }>("sync-schedule", { concurrency: 4, handle: handleSchedule });
  let watch: NodeJS.Timeout | undefined;
  // How far the clock has stood ahead of the monotonic one since the last look.
  let ahead = Number.NEGATIVE_INFINITY;
  const scheduleNow = (): number => {
    const at = clock.now();
    ahead = Math.max(ahead, at - clock.monotonic());
    return at;
  };

  return {
    async start() {
      await mendSchedules();
      watch = setInterval(() => {
        const before = ahead;
        ahead = clock.now() - clock.monotonic();
        if (ahead < before - CLOCK_SLACK_MS) void mendSchedules();
      }, CLOCK_LOOK_MS).unref();
    },
    close: () => clearInterval(watch),
    wake: () => schedules.wake(),
    dueAt,
    cancel: (sync) => schedules.cancel(sync),
  };

  function dueAt(sync: Scheduled): number | null {
    if (sync.environment !== "live" || sync.status === "paused") return null;
    const at = scheduleNow();
    return sync.schedule === "realtime" ? at : nextDue(sync, at);
  }

  // A run that lies later than the schedule wants it was put when the clock stood later; one that is not there, by a process that died
  // before it came to that. An earlier one has been missed and is caught up.
  async function mendSchedules(): Promise<void> {
    try {
      const times = await schedules.times();
      for (let after: string | undefined; ; ) {
        const page = { limit: 100, ...(after === undefined ? {} : { after }) };
        const { rows, more } = await units.sync.list({ environment: "live", page });
        for (const sync of rows) {
          const at = dueAt(sync);
          const soon = clock.now() + CLOCK_SLACK_MS;
          const latest = sync.schedule === "realtime" ? soon : (nextDue(sync, soon) ?? Number.POSITIVE_INFINITY);
          const put = times.get(sync.id);
          if (at !== null && (put === undefined || put > latest))
            await schedules.put({ sync: sync.id }, { key: sync.id, runAt: at });
        }
        if (!more) return;
        after = rows.at(-1)?.id;
      }
    } catch (error) {
      logger.error("sync.schedules_failed", { detail: String(error) });
    }
  }

  async function handleSchedule({ payload, claim, signal }: Job<{ sync: string }>): Promise<Outcome> {
    // Taken as the queue stopped: it stays due, also for another daemon.
    if (signal.aborted) return { runAgainAt: clock.now() };
    const sync = await units.sync.get({ id: payload.sync, environment: "live" });
    if (sync === null || sync.status === "paused") return undefined;
    // It has become manual, and the process ended before it took this away.
    if (sync.schedule === "manual") return undefined;
    const realtime = sync.schedule === "realtime";
    const at = scheduleNow();
    const due = realtime ? at + REALTIME_PAUSE_MS : nextDue(sync, at);
    try {
      await units.run.start({
        ...{ id: sync.id, environment: "live", runId: newId("run", clock.now()), now: rfc3339(clock.now()) },
        ...{ trigger: realtime ? "realtime" : "schedule", fullRefresh: false, objects: null, limit: null },
        occurrence: { claim, next: due },
      });
      onStarted();
    } catch (error) {
      // What only its owner can mend, and a resume takes up again. Storage that is full or away for a while must not end a schedule.
      if (!isMagicError(error) || !(error.code === "connection_missing" || error.code === "conflict")) throw error;
      logger.warn("sync.schedule_refused", { sync: sync.id, detail: error.message });
    }
    return undefined;
  }
}
