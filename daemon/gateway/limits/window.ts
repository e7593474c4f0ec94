// A sliding window of sub-buckets: how much happened in the last minute, to a second's precision, in constant memory. The oldest,
// half-expired bucket still counts whole, so that a limit is never exceeded in any minute.
import type { Clock } from "#shared/clock.ts";

const BUCKET_MS = 1_000;
const BUCKETS = 61;

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
  let newest = Math.floor(clock.monotonic() / BUCKET_MS);
  let total = 0;

  const advance = (): void => {
    const now = Math.floor(clock.monotonic() / BUCKET_MS);
    if (now - newest >= BUCKETS) {
      amounts.fill(0);
      total = 0;
      newest = now;
    }
    while (newest < now) {
      newest++;
      const slot = newest % BUCKETS;
      total -= amounts[slot] ?? 0;
      amounts[slot] = 0;
    }
  };

  const put = (bucket: number, amount: number): void => {
    const slot = bucket % BUCKETS;
    const before = amounts[slot] ?? 0;
    const after = Math.max(0, before + amount);
    amounts[slot] = after;
    total += after - before;
  };

  return {
    sum() {
      advance();
      return total;
    },
    add(amount) {
      advance();
      put(newest, amount);
      return newest;
    },
    correct(when, amount) {
      advance();
      if (amount > 0) put(newest, amount);
      else if (newest - when < BUCKETS) put(when, amount);
    },
    untilBelow(room) {
      advance();
      let left = total;
      for (let age = BUCKETS - 1; age >= 0; age--) {
        if (left <= room) return Math.max(0, (newest - age + BUCKETS - 1) * BUCKET_MS + 0 - clock.monotonic());
        left -= amounts[(((newest - age) % BUCKETS) + BUCKETS) % BUCKETS] ?? 0;
      }
      return BUCKETS * BUCKET_MS - (clock.monotonic() - newest * BUCKET_MS);
    },
  };
}
