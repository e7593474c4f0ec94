// A sliding window of sub-buckets: how much happened in the last minute, to a second's precision, in constant memory. The oldest,
// half-expired bucket still counts whole, so that a limit is never exceeded in any minute.
import type { Clock } from "#shared/clock.ts";

const BUCKET_MS = 1_000;
const BUCKETS = 61;

export interface Window {
  /** What the last minute holds. */
  sum(): number;
  add(amount: number): void;
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

  return {
    sum() {
      advance();
      return total;
    },
    add(amount) {
      advance();
      const slot = newest % BUCKETS;
      const before = amounts[slot] ?? 0;
      // A correction never makes a bucket negative: what it corrects may have left the window already.
      const after = Math.max(0, before + amount);
      amounts[slot] = after;
      total += after - before;
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
