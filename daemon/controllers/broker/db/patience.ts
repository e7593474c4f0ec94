// A server that is frozen, or that a network has forgotten, answers nothing and closes nothing: whoever waits for it would keep a session's
// place for as long.
import { onAbort } from "#shared/abort.ts";

/** Opens a session, or the transaction in it. */
export const BEGIN_WITHIN_MS = 10_000;

/** Does the work; `giveUp` ends it when the time is over, or its caller has left. */
export async function patiently<T>(
  giveUp: () => void,
  work: () => Promise<T>,
  ms: number,
  signal?: AbortSignal,
): Promise<T> {
  const timer = setTimeout(giveUp, ms);
  const forget = onAbort(signal, giveUp);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
    forget();
  }
}
