// How many calls of one version run at once, and how many wait.
import { MagicError } from "#contract/errors.ts";
import type { AbortNotice } from "#shared/abort.ts";

export interface Admission {
  /** Takes a place; undefined where all are taken. */
  tryEnter(): boolean;
  /**
   * Waits for a place in turn. `around`: who has one and gives it back only after this call. Throws `overloaded` when too many wait, the wait
   * is over, or every place waits for another one; `client_closed` when the caller left.
   */
  wait(mostMs: number, signal?: AbortNotice, around?: readonly object[]): Promise<void>;
  leave(): void;
  readonly active: number;
  readonly waiting: number;
}

interface Waiter {
  readonly enter: () => void;
  readonly around: readonly object[];
  gone: boolean;
}

export function openAdmission(name: string, places: number, queue: number): Admission {
  let active = 0;
  let waiting = 0;
  const line: Waiter[] = [];

  // No place would ever become free.
  const wouldStick = (around: readonly object[]): boolean => {
    if (around.length === 0) return false;
    const held = line.flatMap((waiter) => (waiter.gone ? [] : waiter.around));
    return new Set([...held, ...around]).size >= active;
  };

  return {
    tryEnter() {
      if (active >= places) return false;
      active++;
      return true;
    },
    wait(mostMs, signal, around = []) {
      if (wouldStick(around))
        return Promise.reject(
          new MagicError(
            "overloaded",
            `${name} invokes itself, and all of its ${places} places (limits.concurrency) wait for that`,
          ),
        );
      if (waiting >= queue)
        return Promise.reject(
          new MagicError(
            "overloaded",
            `${name} runs ${places} calls and ${queue} more wait: limits.concurrency is reached`,
            {
              retryAfterS: 1,
            },
          ),
        );
      return new Promise((resolve, reject) => {
        waiting++;
        const end = (): void => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", left);
          waiting--;
        };
        const give = (error: MagicError): void => {
          waiter.gone = true;
          end();
          reject(error);
        };
        const waiter: Waiter = {
          around,
          gone: false,
          enter: () => {
            end();
            active++;
            resolve();
          },
        };
        const timer = setTimeout(
          () =>
            give(new MagicError("overloaded", `${name}: no place became free within ${mostMs} ms`, { retryAfterS: 1 })),
          mostMs,
        );
        const left = (): void => give(new MagicError("client_closed"));
        signal?.addEventListener("abort", left, { once: true });
        line.push(waiter);
      });
    },
    leave() {
      active--;
      while (line.length > 0 && active < places) {
        const next = line.shift();
        if (next && !next.gone) next.enter();
      }
    },
    get active() {
      return active;
    },
    get waiting() {
      return waiting;
    },
  };
}
