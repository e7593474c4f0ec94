// Which of the daemons that share a database live: what one that died had under way is under way no longer. Where one daemon owns a root
// at a time (SQLite), no other one lives.
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import type { Storage } from "./storage.ts";

export interface Presence {
  /** This process in the rows of what it has under way. */
  readonly process: string;
  /** Durable before its first such row: that this process lives. */
  announce(): Promise<void>;
  close(): void;
}

export interface PresenceOptions {
  readonly units: Pick<Storage["units"]["idempotency"], "live">;
  readonly clock: Clock;
  /** True where other daemons share the storage. */
  readonly shared: boolean;
  /** Notes the id before it is announced, for whoever comes after this process. */
  readonly note?: ((process: string) => void) | undefined;
}

/** What a process that died had under way counts as under way so long, by the database's clock. */
const LEASE_MS = 60_000;
const BEAT_MS = 15_000;

export function createPresence({ units, clock, shared, note }: PresenceOptions): Presence {
  const process = newId("proc");
  let living: Promise<void> | undefined;
  let noted = false;
  let beats: NodeJS.Timeout | undefined;
  const beat = (): Promise<void> => {
    const now = clock.now();
    return units.live({ process, now: rfc3339(now), until: rfc3339(now + LEASE_MS) });
  };
  async function live(): Promise<void> {
    if (!noted) note?.(process);
    noted = true;
    try {
      await beat();
    } catch (error) {
      living = undefined;
      throw error;
    }
    beats ??= setInterval(() => void beat().catch(() => undefined), BEAT_MS).unref();
  }
  return {
    process,
    async announce() {
      if (!shared) return;
      living ??= live();
      await living;
    },
    close: () => clearInterval(beats),
  };
}
