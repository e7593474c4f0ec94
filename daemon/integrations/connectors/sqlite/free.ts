// A SQLite file that others use: whoever is in the way is waited for. Waiting inside SQLite would block the process, and nobody could cancel.
import { setTimeout as sleep } from "node:timers/promises";
import { isBusy } from "./errors.ts";

export interface Waits {
  readonly signal: AbortSignal;
  waiting(what: string): void;
}

/** Does `work` as soon as nobody is in its way any more. */
export async function whenFree<T>(work: () => T, waits: Waits, what: string): Promise<T> {
  waits.waiting(what);
  for (;;) {
    if (waits.signal.aborted) throw waits.signal.reason;
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await sleep(50);
    }
  }
}
