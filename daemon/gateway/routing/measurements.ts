// How fast each candidate has been of late, for the `fastest` strategy: a moving average of the time to a stream's first content, and
// one of the time to a whole answer, which takes many times as long and says nothing of the other.
import type { Clock } from "#shared/clock.ts";

export interface Measurements {
  observed(name: string, stream: boolean, ms: number): void;
  /** Milliseconds; null where nothing recent is known. */
  latency(name: string, stream: boolean): number | null;
}

const WEIGHT_OF_NEW = 0.2;
const MAX_AGE_MS = 5 * 60_000;
/** Of names, which come from clients. */
const MOST = 10_000;

interface Average {
  ms: number;
  at: number;
}

export function createMeasurements(clock: Clock): Measurements {
  const streams = new Map<string, Average>();
  const answers = new Map<string, Average>();
  return {
    observed(name, stream, ms) {
      const seen = stream ? streams : answers;
      const known = seen.get(name);
      const now = clock.monotonic();
      if (!known && seen.size >= MOST) seen.clear();
      if (!known || now - known.at > MAX_AGE_MS) seen.set(name, { ms, at: now });
      else {
        known.ms += WEIGHT_OF_NEW * (ms - known.ms);
        known.at = now;
      }
    },
    latency(name, stream) {
      const known = (stream ? streams : answers).get(name);
      return known && clock.monotonic() - known.at <= MAX_AGE_MS ? known.ms : null;
    },
  };
}
