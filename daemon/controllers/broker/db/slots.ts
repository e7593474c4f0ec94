// A bounded number of sessions, handed out in turn.
import { MagicError } from "#contract/errors.ts";

export interface Slots {
  /** Waits for a free one. Throws MagicError `timeout` when `signal` is aborted. */
  take(signal: AbortSignal): Promise<void>;
  /** It goes to who has waited longest. */
  give(): void;
}

export function openSlots(most: number): Slots {
  let free = most;
  const waiting: (() => void)[] = [];
  return {
    take(signal) {
      // A handler whose caller has left goes on, and may try for as long as it has.
      if (signal.aborted) return Promise.reject(new MagicError("timeout", "the invocation has ended"));
      if (free > 0) {
        free--;
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        const enter = (): void => {
          signal.removeEventListener("abort", leave);
          resolve();
        };
        const leave = (): void => {
          waiting.splice(waiting.indexOf(enter), 1);
          reject(new MagicError("timeout", "no database session became free in time"));
        };
        signal.addEventListener("abort", leave, { once: true });
        waiting.push(enter);
      });
    },
    give() {
      const next = waiting.shift();
      if (next) next();
      else free++;
    },
  };
}
