// How many asynchronous jobs of a connection are under way at a time: vendors refuse more than their limit.
import { setTimeout as delay } from "node:timers/promises";

/** For telling the vendor that nobody wants what it prepares: a little more than one request may take. */
const PATIENCE_MS = 6000;

export interface JobGate {
  /** Runs the work when there is room. The signal aborts once nobody waits for what it makes. */
  run<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
  /** Ends what runs and what waits for room; resolves when that has ended, or takes too long. */
  abandon(reason: unknown): Promise<void>;
}

export function createJobGate(most: number): JobGate {
  let free = Math.max(1, Math.floor(most) || 1);
  let wanted = new AbortController();
  const waiting: (() => void)[] = [];
  const running = new Set<Promise<unknown>>();
  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };
  return {
    async run(work) {
      const { signal } = wanted;
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      let job: ReturnType<typeof work> | undefined;
      try {
        signal.throwIfAborted();
        job = work(signal);
        running.add(job);
        return await job;
      } finally {
        if (job) running.delete(job);
        // Where this one's failure is that of the whole read, it is abandoned before the next begins.
        setImmediate(leave);
      }
    },
    async abandon(reason) {
      wanted.abort(reason);
      wanted = new AbortController();
      await Promise.race([Promise.allSettled(running), delay(PATIENCE_MS, undefined, { ref: false })]);
    },
  };
}
