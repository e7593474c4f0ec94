// Turns among the daemons that share a database: a refresh token is good once, and two that used it would lose the grant for both. A
// turn is a row, kept where idempotency keys are: that of a daemon that died is over with it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Presence } from "#daemon/storage/presence.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { createTurns, type Turns } from "#shared/turns.ts";

/** No caller's: those have three words. */
const OWNER = "turn";
/** Longer than any exchange with a token endpoint. */
const LEASE_MS = 60_000;
const LOOK_MS = 100;

export interface SharedTurnsOptions {
  readonly units: Pick<Storage["units"]["idempotency"], "reserve" | "release">;
  readonly clock: Clock;
  readonly presence: Pick<Presence, "process" | "announce">;
}

export function createSharedTurns({ units, clock, presence }: SharedTurnsOptions): Turns {
  const own = createTurns();

  async function takeRow(name: string): Promise<string> {
    const id = newId("turn");
    const row = { id, owner: OWNER, key: name, fingerprint: "", process: presence.process };
    await presence.announce();
    for (;;) {
      const now = clock.now();
      const found = await units.reserve({ ...row, now: rfc3339(now), expires_at: rfc3339(now + LEASE_MS) });
      if (found.state === "reserved") return id;
      if (found.state === "unknown") await units.release({ id: found.id });
      else await sleep(LOOK_MS);
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
