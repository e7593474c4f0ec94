// Turns among the daemons that share a database: a refresh token is good once, and two that used it would lose the grant for both. A
// turn is a row, kept where idempotency keys are.
import { setTimeout as sleep } from "node:timers/promises";
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { createTurns, type Turns } from "#shared/turns.ts";

/** No caller's: those have three words. */
const OWNER = "turn";
/** Longer than any exchange with a token endpoint: whoever has not given it back by then died. */
const LEASE_MS = 60_000;
const LOOK_MS = 100;

export interface SharedTurnsOptions {
  readonly units: Pick<Storage["units"]["idempotency"], "reserve" | "release">;
  readonly clock: Clock;
}

export function createSharedTurns({ units, clock }: SharedTurnsOptions): Turns {
  const own = createTurns();

  async function takeRow(name: string): Promise<string> {
    const id = newId("turn");
    const row = { id, owner: OWNER, key: name, fingerprint: "", process: id };
    for (;;) {
      const now = clock.now();
      const found = await units.reserve({ ...row, now: rfc3339(now), expires_at: rfc3339(now + LEASE_MS) });
      if (found.state === "reserved") return id;
      await sleep(LOOK_MS);
    }
  }

  return {
    async take(name) {
      const end = await own.take(name);
      try {
        const id = await takeRow(name);
        return () =>
          void units
            .release({ id })
            .catch(() => undefined)
            .finally(end);
      } catch (error) {
        end();
        throw error;
      }
    },
  };
}
