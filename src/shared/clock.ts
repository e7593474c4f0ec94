/** Time, passed in so that a test can hold it. */
export interface Clock {
  /** Milliseconds since the epoch; may jump. For what is written down. */
  now(): number;
  /** Milliseconds on a clock that never goes back. For durations. */
  monotonic(): number;
}

export const DAY_MS = 86_400_000;

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

// Every request writes several moments down, and many requests one and the same; all of one second share their text but for its end. It is a
// text in one piece, like an id.
let lastMs = Number.NaN;
let lastSecond = Number.NaN;
let lastText = "";
let characters = Buffer.alloc(0);

/** RFC 3339, UTC, milliseconds: the form of every time on the wire. */
export function rfc3339(ms: number): string {
  if (ms === lastMs) return lastText;
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    characters = Buffer.from(new Date(second * 1000).toISOString(), "latin1");
    lastSecond = second;
  }
  let rest = Math.floor(ms - second * 1000);
  for (let place = characters.length - 2; place > characters.length - 5; place--) {
    characters[place] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  lastText = characters.toString("latin1");
  lastMs = ms;
  return lastText;
}

/** The last moment that four digits for a year can write: what an offset puts beyond it counts as this one. */
export const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** Any text of RFC 3339 in that form. */
export function inUtc(text: string): string {
  return rfc3339(Math.min(Date.parse(text), LAST_MS));
}
