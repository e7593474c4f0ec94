/** Time, passed in so that a test can hold it. */
export interface Clock {
  /** Milliseconds since the epoch; may jump. For what is written down. */
  now(): number;
  /** Milliseconds on a clock that never goes back. For durations. */
  monotonic(): number;
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

// Every request writes several moments down; all of one second share their text but for its end.
let lastSecond = Number.NaN;
let lastText = "";

/** RFC 3339, UTC, milliseconds: the form of every time on the wire. */
export function rfc3339(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    lastText = new Date(second * 1000).toISOString().slice(0, -4);
    lastSecond = second;
  }
  const rest = Math.floor(ms - second * 1000);
  return `${lastText}${rest < 10 ? "00" : rest < 100 ? "0" : ""}${rest}Z`;
}
