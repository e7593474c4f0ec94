// How fast each candidate has been of late: a moving average of the time to its first byte, for the `fastest` strategy.
import type { Clock } from "#shared/clock.ts";

export interface Measurements {
  observed(key: string, ms: number): void;
  /** Milliseconds to the first byte; null where nothing recent is known. */
  latency(key: string): number | null;
}

const WEIGHT_OF_NEW = 0.2;
const MAX_AGE_MS = 5 * 60_000;
/** Of names, which come from clients. */
const MOST = 10_000;

export function createMeasurements(clock: Clock): Measurements {
  const seen = new Map<string, { ms: number; at: number }>();
  return {
    observed(key, ms) {
      const known = seen.get(key);
      const now = clock.monotonic();
      if (!known && seen.size >= MOST) seen.clear();
      if (!known || now - known.at > MAX_AGE_MS) seen.set(key, { ms, at: now });
      else {
        known.ms += WEIGHT_OF_NEW * (ms - known.ms);
        known.at = now;
      }
    },
    latency(key) {
      const known = seen.get(key);
      return known && clock.monotonic() - known.at <= MAX_AGE_MS ? known.ms : null;
    },
  };
}
