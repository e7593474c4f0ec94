// Ends what a server still does for sessions that were given up. It notices that its client has gone when it next writes to it: until
// then the statement runs on, its connection counts, and a controller of short calls would use up all that the server has.
import { RELEASE_WITHIN_MS } from "./driver.ts";

/** Resolves when the session is ended, or cannot be in time. One connection at a time is made for all that wait. */
export type Reap<T> = (session: T) => Promise<void>;

/** `end` gives up, and lets go of its connection, when its signal is aborted. */
export function openReaper<T>(
  end: (sessions: readonly T[], signal: AbortSignal) => Promise<unknown>,
  withinMs = RELEASE_WITHIN_MS,
): Reap<T> {
  let waiting: T[] = [];
  let next: Promise<void> | null = null;
  let under: Promise<unknown> = Promise.resolve();
  return (session) => {
    waiting.push(session);
    next ??= under.then(async () => {
      const sessions = waiting;
      waiting = [];
      next = null;
      // Where it fails, the server's own limit of a statement's time is left.
      under = within(withinMs, (signal) => end(sessions, signal).catch(() => {}));
      await under;
    });
    return next;
  };
}

/** A server that does not answer must not keep the places of those that wait. */
async function within(ms: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const late = new AbortController();
  const over = new Promise((resolve) => late.signal.addEventListener("abort", resolve));
  const timer = setTimeout(() => late.abort(), ms);
  await Promise.race([work(late.signal), over]);
  clearTimeout(timer);
}
