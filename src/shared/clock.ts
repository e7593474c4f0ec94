/** Time, passed in so that a test can hold it. */
export interface Clock {
  /** Milliseconds since the epoch; may jump. For what is written down. */
  now(): number;
  /** Milliseconds on a clock that never goes back. For durations. */
  monotonic(): number;
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

// One request writes its moment down several times, and making the text costs more than the comparison.
let lastMs = Number.NaN;
let lastText = "";

/** RFC 3339, UTC, milliseconds: the form of every time on the wire. */
export function rfc3339(ms: number): string {
  if (ms === lastMs) return lastText;
  lastText = new Date(ms).toISOString();
  lastMs = ms;
  return lastText;
}
