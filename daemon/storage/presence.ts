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

/** What a process that died had under way counts as under way so long, by the database's clock. */
const LEASE_MS = 60_000;
const BEAT_MS = 15_000;
/** Where the database was away for as long as that, who does not say at once that it lives is taken for dead by the others. */
const RETRY_MS = 1_000;

/** `note` keeps the id before it is announced, for whoever comes after this process. */
export function createPresence(
  { units, dialect }: Pick<Storage, "units" | "dialect">,
  clock: Clock,
  note?: (process: string) => void,
): Presence {
  const process = newId("proc");
  let living: Promise<void> | undefined;
  let noted = false;
  let beats: NodeJS.Timeout | undefined;
  let closed = false;
  const beat = (): Promise<void> => {
    const now = clock.now();
    return units.idempotency.live({ process, now: rfc3339(now), until: rfc3339(now + LEASE_MS) });
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
    beats ??= setTimeout(again, BEAT_MS).unref();
  }
  async function again(): Promise<void> {
    const next = await beat().then(
      () => BEAT_MS,
      () => RETRY_MS,
    );
    if (!closed) beats = setTimeout(again, next).unref();
  }
  return {
    process,
    async announce() {
      if (dialect === "sqlite") return;
      living ??= live();
      await living;
    },
    close() {
      closed = true;
      clearTimeout(beats);
    },
  };
}
