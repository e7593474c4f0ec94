// Idempotency keys of the core API over the storage unit: reserve, then complete or release. Answers are kept sealed, since
// some of them show a secret.
import type { Sealer } from "#daemon/secrets/sealer.ts";
import { createPresence } from "#daemon/storage/presence.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { KEEP_MS, refusalOf, type StoredAnswer } from "./state.ts";

export interface Idempotency {
  /**
   * The reservation's id for the first request with a key, or the answer to repeat.
   * @throws MagicError `idempotency_in_progress`, `idempotency_key_reused`, `idempotency_outcome_unknown`.
   */
  begin(owner: string, key: string, fingerprint: string): Promise<{ id: string } | { replay: StoredAnswer }>;
  /** Keeps the answer; durable when it resolves. */
  complete(id: string, answer: StoredAnswer): Promise<void>;
  /** Nothing was done: the key may be used again. */
  release(id: string): Promise<void>;
  close(): void;
}

export interface IdempotencyOptions {
  readonly units: Storage["units"]["idempotency"];
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** True where other daemons share the storage. */
  readonly shared: boolean;
}

const SWEEP_MS = 10 * 60_000;
const SWEPT_AT_ONCE = 1_000;

export function createIdempotency({ units, sealer, clock, shared }: IdempotencyOptions): Idempotency {
  const presence = createPresence({ units, clock, shared });
  const place = (id: string) => ({ tenant: "account", row: id, field: "answer" });
  const timer = setInterval(() => {
    sweep().catch(() => undefined);
  }, SWEEP_MS).unref();
  // As often as there is more: else more would come than go.
  async function sweep(): Promise<void> {
    const batch = { now: rfc3339(clock.now()), limit: SWEPT_AT_ONCE };
    while ((await units.sweep(batch)) === SWEPT_AT_ONCE);
  }

  return {
    async begin(owner, key, fingerprint) {
      await presence.announce();
      const now = clock.now();
      const found = await units.reserve({
        id: newId("idem"),
        owner,
        key,
        // Keyed: a plain one would let whoever copies the database try passwords on it.
        fingerprint: sealer.digest(fingerprint),
        process: presence.process,
        now: rfc3339(now),
        expires_at: rfc3339(now + KEEP_MS),
      });
      if (found.state === "reserved") return { id: found.id };
      if (found.state !== "done") throw refusalOf(found.state);
      return { replay: JSON.parse(sealer.open(found.answer, place(found.id))) as StoredAnswer };
    },
    async complete(id, answer) {
      await units.complete({ id, answer: sealer.seal(JSON.stringify(answer), place(id)) });
    },
    release: (id) => units.release({ id }),
    close() {
      clearInterval(timer);
      presence.close();
    },
  };
}
