/** Time, passed in so that a test can hold it. */
export interface Clock {
  /** Milliseconds since the epoch; may jump. For what is written down. */
  now(): number;
  /** Milliseconds on a clock that never goes back. For durations. */
  monotonic(): number;
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** RFC 3339, UTC, milliseconds: the form of every time on the wire. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString();
}
