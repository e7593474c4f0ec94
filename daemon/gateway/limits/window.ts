// A sliding window of sub-buckets: how much happened in the last minute, in constant memory. A bucket counts whole until a minute
// after the last that fell into it, so that a limit is never exceeded in any minute, and nobody waits longer than one.
import type { Clock } from "#shared/clock.ts";

const WINDOW_MS = 60_000;
const BUCKET_MS = 1_000;
/** Those of the minute, the one under way, and one that its last moment keeps. */
const BUCKETS = 62;

export interface Window {
  /** What the last minute holds. */
  sum(): number;
  /** Returns when that was, for a correction. */
  add(amount: number): number;
  /** Takes back what was added too much then, as long as that is in the window; what was too little counts from now on. */
  correct(when: number, amount: number): void;
  /** Milliseconds until at most `room` is left in the window, if nothing is added. */
  untilBelow(room: number): number;
}

export function createWindow(clock: Clock): Window {
  const amounts = new Float64Array(BUCKETS);
  /** When the last fell into each bucket. */
  const last = new Float64Array(BUCKETS);
  let newest = Math.floor(clock.monotonic() / BUCKET_MS);
  let oldest = newest;
  let total = 0;

  // Returns the time.
  const advance = (): number => {
    const now = clock.monotonic();
    const at = Math.floor(now / BUCKET_MS);
    if (at - newest >= BUCKETS) {
      amounts.fill(0);
      total = 0;
      oldest = at;
    }
    newest = at;
    for (; oldest < newest; oldest++) {
      const slot = oldest % BUCKETS;
      const amount = amounts[slot] ?? 0;
      if (amount > 0 && now - (last[slot] ?? 0) < WINDOW_MS) break;
      total -= amount;
      amounts[slot] = 0;
    }
    return now;
  };

  const put = (bucket: number, amount: number): void => {
    const slot = bucket % BUCKETS;
    const before = amounts[slot] ?? 0;
    const after = Math.max(0, before + amount);
    amounts[slot] = after;
    total += after - before;
  };

  const add = (amount: number, now: number): void => {
    put(newest, amount);
    last[newest % BUCKETS] = now;
  };

  return {
    sum() {
      advance();
      return total;
    },
    add(amount) {
      add(amount, advance());
      return newest;
    },
    correct(when, amount) {
      const now = advance();
      if (amount > 0) add(amount, now);
      else if (when >= oldest) put(when, amount);
    },
    untilBelow(room) {
      const now = advance();
      let left = total;
      let wait = 0;
      for (let bucket = oldest; bucket <= newest && left > room; bucket++) {
        const amount = amounts[bucket % BUCKETS] ?? 0;
        if (amount > 0) wait = (last[bucket % BUCKETS] ?? 0) + WINDOW_MS - now;
        left -= amount;
      }
      return Math.max(0, wait);
    },
  };
}
