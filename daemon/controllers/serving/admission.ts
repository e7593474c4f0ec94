// How many calls of one version run at once, and how many wait.
import { MagicError } from "#contract/errors.ts";
import type { AbortNotice } from "#shared/abort.ts";
import type { Holder, NestedCalls } from "./nested.ts";

export interface Admission {
  /** Takes a place; undefined where all are taken. */
  tryEnter(): boolean;
  /**
   * Waits for a place in turn. `within`: the invocation that waits for this call. Throws `overloaded` when too many wait, the wait is over, or
   * no place will become free before this call has one; `client_closed` when the caller left.
   */
  wait(mostMs: number, signal?: AbortNotice, within?: Holder): Promise<void>;
  leave(): void;
  readonly active: number;
  readonly waiting: number;
}

/** `nested`: those that wait anywhere; every admission of a runtime has the same. */
export function openAdmission(name: string, places: number, queue: number, nested: NestedCalls): Admission {
  let active = 0;
  /** In turn; whoever gives up is taken out. */
  const line = new Set<() => void>();

  const admission: Admission = {
    tryEnter() {
      if (active >= places) return false;
      active++;
      return true;
    },
    wait(mostMs, signal, within) {
      // A handler goes on without its caller; the place that it had is another's.
      if (signal?.aborted) return Promise.reject(new MagicError("client_closed"));
      if (line.size >= queue)
        return Promise.reject(
          new MagicError(
            "overloaded",
            `${name} runs ${places} calls and ${queue} more wait: limits.concurrency is reached`,
            {
              retryAfterS: 1,
            },
          ),
        );
      const inside = within && { full: admission, within };
      if (inside && nested.wouldStick(inside))
        return Promise.reject(
          new MagicError(
            "overloaded",
            `${name} is invoked in a circle, and all of its ${places} places (limits.concurrency) wait for calls that wait for this one`,
          ),
        );
      return new Promise((resolve, reject) => {
        if (inside) nested.add(inside);
        const end = (): void => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", left);
          line.delete(enter);
          if (inside) nested.delete(inside);
        };
        const give = (error: MagicError): void => {
          end();
          reject(error);
        };
        const enter = (): void => {
          end();
          active++;
          resolve();
        };
        const timer = setTimeout(
          () =>
            give(new MagicError("overloaded", `${name}: no place became free within ${mostMs} ms`, { retryAfterS: 1 })),
          mostMs,
        );
        const left = (): void => give(new MagicError("client_closed"));
        signal?.addEventListener("abort", left, { once: true });
        line.add(enter);
      });
    },
    leave() {
      active--;
      for (const enter of line) {
        if (active >= places) return;
        enter();
      }
    },
    get active() {
      return active;
    },
    get waiting() {
      return line.size;
    },
  };
  return admission;
}
