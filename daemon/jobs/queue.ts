// One queue in this process: takes the jobs that are due, as many as may run at once, then sleeps until another is due or one wakes it.
import type { Claim, ClaimedJob } from "#daemon/storage/repositories/job.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { backoff, jittered } from "#shared/backoff.ts";
import type { Clock } from "#shared/clock.ts";
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

/** What the queues of a process share. */
export interface QueueHost {
  readonly units: Storage["units"]["job"];
  /** In whose name jobs are taken. */
  readonly owner: string;
  readonly clock: Clock;
  readonly logger: Logger | undefined;
  /** After so many milliseconds a queue that nothing wakes looks again. */
  readonly pollMs: number;
  /** False: nothing is taken yet. */
  started(): boolean;
  /** Aborts when no more work is taken. */
  readonly stopping: AbortSignal;
  /** What runs, for whoever waits for its end. */
  readonly running: Set<Promise<void>>;
}

const MAX_PAUSE_MS = 5 * 60_000;

export function openQueue<T>(name: string, options: QueueOptions<T>, host: QueueHost): Queue<T> {
  const { concurrency, resting: mostResting = 0, leaseMs = 60_000 } = options;
  const { units, owner, clock, logger, stopping, running } = host;
  // Their leases seem to have ended when the clock jumps ahead, as after a machine's sleep.
  const here = new Set<string>();
  let active = 0;
  let resting = 0;
  let looking = false;
  let lookAgain = false;
  let timer: NodeJS.Timeout | undefined;
  const wake = (): void => void look();
  stopping.addEventListener("abort", () => clearTimeout(timer));

  async function look(): Promise<void> {
    if (!host.started() || stopping.aborted) return;
    lookAgain = true;
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    let pause = host.pollMs;
    try {
      while (lookAgain && active < concurrency && !stopping.aborted) await take();
      if (active < concurrency) {
        const due = await units.nextDue({ queue: name });
        if (due !== null) pause = Math.min(pause, Math.max(5, due - clock.now()));
      }
    } catch (error) {
      if (!stopping.aborted) logger?.error("jobs.look_failed", { queue: name, detail: String(error) });
      pause = Math.min(pause, 1000);
    }
    looking = false;
    if (stopping.aborted) return;
    timer = setTimeout(wake, pause);
    timer.unref();
    if (lookAgain && active < concurrency) wake();
  }

  // Begins as many as there are places for.
  async function take(): Promise<void> {
    lookAgain = false;
    const limit = concurrency - active;
    const aheadMs = options.aheadMs && Math.max(options.aheadMs(), MAX_PAUSE_MS);
    const atWork = [...here];
    const claimed = await units.claim({ queue: name, owner, now: clock.now(), leaseMs, limit, atWork, aheadMs });
    if (claimed.length === limit) lookAgain = true;
    for (const job of claimed) begin(job);
  }

  function begin(job: ClaimedJob): void {
    here.add(job.id);
    active++;
    const run = carryOut(job).then(async (ended) => {
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

  // False: storage was not told of its end. It stays in this process's name, and runs again after a pause.
  async function carryOut(job: ClaimedJob): Promise<boolean> {
    const end = await handled(job);
    try {
      await units.finish({ id: job.id, owner, version: job.version, ...end });
      return true;
    } catch (error) {
      logger?.error("jobs.finish_failed", { queue: name, job: job.id, detail: String(error) });
      return false;
    }
  }

  // When it runs again (null: never), and whether that is because it failed.
  async function handled(job: ClaimedJob): Promise<{ runAt: number | null; failed: boolean }> {
    const { id, key, attempts: attempt, version } = job;
    const beat = setInterval(() => {
      units.extend({ id, owner, now: clock.now(), leaseMs }).catch(() => {});
    }, leaseMs / 3);
    beat.unref();
    const rest = placeOf();
    try {
      const payload = JSON.parse(job.payload) as T;
      const claim = { id, owner, version };
      const outcome = await options.handle({ id, key, payload, attempt, claim, signal: stopping, rest });
      return { runAt: outcome ? Math.trunc(outcome.runAgainAt) : null, failed: false };
    } catch (error) {
      logger?.error("jobs.failed", { queue: name, job: id, attempt, detail: String(error) });
      return { runAt: Math.trunc(clock.now() + jittered(backoff(attempt, 1_000, MAX_PAUSE_MS))), failed: true };
    } finally {
      clearInterval(beat);
      rest(false);
    }
  }

  // A job's place among those that are active: given up while it rests, if there is room beside them.
  function placeOf(): Job<T>["rest"] {
    let rests = false;
    return (is) => {
      if (is === rests || (is && resting >= mostResting)) return;
      rests = is;
      resting += is ? 1 : -1;
      active += is ? -1 : 1;
      if (is) wake();
    };
  }

  return {
    async put(payload, { key = null, runAt = clock.now() }: { key?: string | null; runAt?: number } = {}) {
      await units.put({ id: newId("job"), queue: name, key, payload: JSON.stringify(payload), runAt });
      wake();
    },
    cancel: (key) => units.cancel({ queue: name, key }),
    times: async () => new Map((await units.times({ queue: name })).map(({ key, run_at }) => [key ?? "", run_at])),
    wake,
  };
}
