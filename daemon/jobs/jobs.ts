// The durable queue and scheduler: a job put here runs at its time, at least once, across restarts. One interface whatever holds
// the rows; who needs work to outlive the process defines a queue.
import type { Presence } from "#daemon/storage/presence.ts";
import type { Claim } from "#daemon/storage/repositories/job.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { backoff, jittered } from "#shared/backoff.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";

export interface Job<T> {
  readonly id: string;
  readonly key: string | null;
  readonly payload: T;
  /** 1 for the first time that it runs; counted anew when it has run and asked to run again. */
  readonly attempt: number;
  /** Whose it is now: for a unit that ends it in one step with its work. */
  readonly claim: Claim;
  /** Aborts when the queue stops: end soon, the job will run again. */
  readonly signal: AbortSignal;
  /** True: it only waits, and another job may have its place, unless too many rest already; false: it goes on. */
  rest(resting: boolean): void;
}

/** What a handler answers: nothing when the job is done, a time (ms since the epoch) to run it again. */
export type Outcome = { readonly runAgainAt: number } | undefined;

export interface QueueOptions<T> {
  /** Does the work. A rejection runs the job again after a growing pause. */
  handle(job: Job<T>): Promise<Outcome>;
  /** How many run at once in this process. */
  readonly concurrency: number;
  /** How many may rest beside them; by default none. */
  readonly resting?: number;
  /** After so long without a sign of life another process may take a job over. */
  readonly leaseMs?: number;
  /** How far ahead (ms) a job is put at most, but after a failure: one that lies further ahead was put before the clock was set back. */
  readonly aheadMs?: () => number;
}

export interface Queue<T> {
  /** Durable when it resolves. With a `key`, it replaces the job of that key. */
  put(payload: T, options?: { readonly key?: string; readonly runAt?: number }): Promise<void>;
  cancel(key: string): Promise<void>;
  /** When each job with a key is due (ms since the epoch). */
  times(): Promise<ReadonlyMap<string, number>>;
  /** Looks for due work now: after a unit has put jobs by itself. */
  wake(): void;
}

export interface Jobs {
  define<T>(name: string, options: QueueOptions<T>): Queue<T>;
  /** Begins to run what is due. */
  start(): Promise<void>;
  /** Takes no more work and waits for what runs. */
  stop(): Promise<void>;
}

export interface JobsOptions {
  readonly storage: Storage;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** In whose name jobs are taken. */
  readonly presence?: Presence;
}

const MAX_PAUSE_MS = 5 * 60_000;

export function createJobs({ storage, clock = systemClock, logger, presence }: JobsOptions): Jobs {
  const owner = presence?.process ?? newId("worker");
  const units = storage.units.job;
  // Another replica may put work; with SQLite only this process does, and it wakes the queue itself.
  const pollMs = storage.dialect === "postgres" ? 1000 : 15_000;
  const wakers: (() => void)[] = [];
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  let started = false;

  return {
    define<T>(name: string, options: QueueOptions<T>): Queue<T> {
      const { handle, concurrency, resting: mostResting = 0, leaseMs = 60_000 } = options;
      // Their leases seem to have ended when the clock jumps ahead, as after a machine's sleep.
      const here = new Set<string>();
      let active = 0;
      let resting = 0;
      let looking = false;
      let lookAgain = false;
      let timer: NodeJS.Timeout | undefined;
      const wake = (): void => void look();
      wakers.push(wake);

      async function look(): Promise<void> {
        if (!started || stopping.signal.aborted) return;
        lookAgain = true;
        if (looking) return;
        looking = true;
        clearTimeout(timer);
        let pause = pollMs;
        try {
          while (lookAgain && active < concurrency && !stopping.signal.aborted) {
            lookAgain = false;
            const limit = concurrency - active;
            const aheadMs = options.aheadMs && Math.max(options.aheadMs(), MAX_PAUSE_MS);
            const atWork = [...here];
            const claimed = await units.claim({
              queue: name,
              owner,
              now: clock.now(),
              leaseMs,
              limit,
              atWork,
              aheadMs,
            });
            if (claimed.length === limit) lookAgain = true;
            for (const job of claimed) {
              here.add(job.id);
              active++;
              const run = execute(job).then(async (ended) => {
                active--;
                running.delete(run);
                // Whoever waits comes before the same job again.
                await look();
                const free = () => {
                  here.delete(job.id);
                  wake();
                };
                if (ended) free();
                else setTimeout(free, jittered(backoff(job.attempts, 200, MAX_PAUSE_MS))).unref();
              });
              running.add(run);
            }
          }
          if (active < concurrency) {
            const due = await units.nextDue({ queue: name });
            if (due !== null) pause = Math.min(pause, Math.max(5, due - clock.now()));
          }
        } catch (error) {
          if (!stopping.signal.aborted) logger?.error("jobs.look_failed", { queue: name, detail: String(error) });
          pause = Math.min(pause, 1000);
        }
        looking = false;
        if (stopping.signal.aborted) return;
        timer = setTimeout(wake, pause);
        timer.unref();
        if (lookAgain && active < concurrency) wake();
      }

      // False: storage was not told of its end.
      async function execute(claimed: Awaited<ReturnType<typeof units.claim>>[number]): Promise<boolean> {
        const { id, key, attempts, version } = claimed;
        const beat = setInterval(() => {
          units.extend({ id, owner, now: clock.now(), leaseMs }).catch(() => {});
        }, leaseMs / 3);
        beat.unref();
        let rests = false;
        const rest = (is: boolean): void => {
          if (is === rests || (is && resting >= mostResting)) return;
          rests = is;
          resting += is ? 1 : -1;
          active += is ? -1 : 1;
          if (is) wake();
        };
        let runAt: number | null = null;
        let failed = false;
        try {
          const payload = JSON.parse(claimed.payload) as T;
          const claim = { id, owner, version };
          const outcome = await handle({ id, key, payload, attempt: attempts, claim, signal: stopping.signal, rest });
          runAt = outcome?.runAgainAt ?? null;
        } catch (error) {
          failed = true;
          runAt = clock.now() + jittered(backoff(attempts, 1_000, MAX_PAUSE_MS));
          logger?.error("jobs.failed", { queue: name, job: id, attempt: attempts, detail: String(error) });
        } finally {
          clearInterval(beat);
          rest(false);
        }
        // A job that could not be ended stays in this process's name, and runs again after a pause.
        try {
          await units.finish({ id, owner, version, runAt: runAt === null ? null : Math.trunc(runAt), failed });
          return true;
        } catch (error) {
          logger?.error("jobs.finish_failed", { queue: name, job: id, detail: String(error) });
          return false;
        }
      }

      stopping.signal.addEventListener("abort", () => clearTimeout(timer));
      return {
        async put(payload, { key = null, runAt = clock.now() }: { key?: string | null; runAt?: number } = {}) {
          await units.put({ id: newId("job"), queue: name, key, payload: JSON.stringify(payload), runAt });
          wake();
        },
        cancel: (key) => units.cancel({ queue: name, key }),
        times: async () => new Map((await units.times({ queue: name })).map(({ key, run_at }) => [key ?? "", run_at])),
        wake,
      };
    },

    async start() {
      if (storage.dialect === "sqlite") await units.releaseOthers({ owner });
      // Its name is noted, should it say only later that it lives.
      else await presence?.announce().catch(() => undefined);
      started = true;
      for (const wake of wakers) wake();
    },

    async stop() {
      stopping.abort();
      await Promise.allSettled(running);
    },
  };
}
