// Idempotency keys of the core API over the storage unit: reserve, then complete or release. Answers are kept sealed, since
// some of them show a secret.
import type { Sealer } from "#daemon/secrets/sealer.ts";
import type { Presence } from "#daemon/storage/presence.ts";
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
  /** Keeps the answer: it is durable when this resolves, unless storage is away; then as soon as it is back. So with the next two. */
  complete(id: string, answer: StoredAnswer): Promise<void>;
  /** Nothing was done: the key may be used again. */
  release(id: string): Promise<void>;
  /** Whether anything was done is not known. */
  abandon(id: string): Promise<void>;
  close(): void;
}

export interface IdempotencyOptions {
  readonly units: Storage["units"]["idempotency"];
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly presence: Presence;
}

const SWEEP_MS = 10 * 60_000;
const SWEPT_AT_ONCE = 1_000;
const OWED_MS = 1_000;
/** Answers that wait for storage. Beyond it their keys stay taken until they expire. */
const MOST_OWED = 1_000;

export function createIdempotency({ units, sealer, clock, presence }: IdempotencyOptions): Idempotency {
  const place = (id: string) => ({ tenant: "account", row: id, field: "answer" });
  const timer = setInterval(() => {
    sweep().catch(() => undefined);
  }, SWEEP_MS).unref();
  // As often as there is more: else more would come than go.
  async function sweep(): Promise<void> {
    const batch = { now: rfc3339(clock.now()), limit: SWEPT_AT_ONCE };
    while ((await units.sweep(batch)) === SWEPT_AT_ONCE);
  }

  // A key that storage could not be told about would stay under way for a day.
  const owed = new Map<string, () => Promise<unknown>>();
  let paying: NodeJS.Timeout | undefined;
  async function surely(id: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch {
      if (owed.size < MOST_OWED) owed.set(id, work);
      paying ??= setTimeout(pay, OWED_MS).unref();
    }
  }
  async function pay(): Promise<void> {
    try {
      for (const [id, work] of owed) {
        await work();
        owed.delete(id);
      }
      paying = undefined;
    } catch {
      paying = setTimeout(pay, OWED_MS).unref();
    }
  }

  return {
    async begin(owner, key, fingerprint) {
      await presence.announce();
      const now = clock.now();
      const id = newId("idem");
      const reserved = units.reserve({
        id,
        owner,
        key,
        // Keyed: a plain one would let whoever copies the database try passwords on it.
        fingerprint: sealer.digest(fingerprint),
        process: presence.process,
        now: rfc3339(now),
        expires_at: rfc3339(now + KEEP_MS),
      });
      const found = await reserved.catch((error: unknown) => {
        // It may have been reserved all the same.
        void surely(id, () => units.release({ id }));
        throw error;
      });
      if (found.state === "reserved") return { id: found.id };
      if (found.state !== "done") throw refusalOf(found.state);
      return { replay: JSON.parse(sealer.open(found.answer, place(found.id))) as StoredAnswer };
    },
    async complete(id, answer) {
      let sealed: string;
      try {
        sealed = sealer.seal(JSON.stringify(answer), place(id));
      } catch {
        // What cannot be kept leaves the key taken, so that nothing is done twice.
        return;
      }
      await surely(id, () => units.complete({ id, answer: sealed }));
    },
    release: (id) => surely(id, () => units.release({ id })),
    abandon: (id) => surely(id, () => units.abandon({ id })),
    close() {
      clearTimeout(paying);
      clearInterval(timer);
    },
  };
}
