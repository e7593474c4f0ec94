// A controller whose cells keep dying is not started again and again: after a few deaths in a row it rests, longer each time.
import { MagicError } from "#contract/errors.ts";
import { backoff } from "#shared/backoff.ts";
import type { Clock } from "#shared/clock.ts";

export interface Breaker {
  /** Throws `overloaded` with Retry-After while it is open. */
  pass(): void;
  died(why: string): void;
  worked(): void;
}

const TOLERATED = 4;
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;

export function openBreaker(name: string, clock: Clock): Breaker {
  let deaths = 0;
  let openUntil = 0;
  let last = "";
  return {
    pass() {
      const rest = openUntil - clock.monotonic();
      if (rest <= 0) return;
      const detail = `${name} died ${deaths} times in a row (last: ${last}); the next attempt is in ${Math.ceil(rest)} ms`;
      throw new MagicError("overloaded", detail, { retryAfterS: Math.ceil(rest / 1000) });
    },
    died(why) {
      deaths++;
      last = why;
      if (deaths <= TOLERATED) return;
      openUntil = clock.monotonic() + backoff(deaths - TOLERATED - 1, FIRST_REST_MS, LONGEST_REST_MS);
    },
    worked() {
      deaths = 0;
    },
  };
}
