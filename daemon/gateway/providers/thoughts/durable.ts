// Gemini's thought signatures beyond a restart: opaque to us, they are no part of what was said, and without them a conversation that is
// under way loses its reasoning. Sealed, found by a keyed digest of caller and call, written in batches beside the answer's way, kept a day.
import type { Place, Sealer } from "#daemon/secrets/sealer.ts";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";
import { type Clock, DAY_MS, rfc3339 } from "#shared/clock.ts";
import { keyOf, type ThoughtMemory, thoughtMemory } from "./memory.ts";

/** daemon/storage/repositories/gateway-signature.ts satisfies it. */
export interface SignatureRows {
  keep(args: {
    readonly rows: readonly { readonly key: string; readonly signature: string }[];
    readonly expires_at: string;
  }): Promise<void>;
  find(args: {
    readonly keys: readonly string[];
  }): Promise<readonly { readonly key: string; readonly signature: string }[]>;
  /** Forgets what has expired, and the oldest beyond `most`. */
  purge(args: { readonly now: string; readonly most: number }): Promise<void>;
}

export interface DurableMemory extends ThoughtMemory {
  /** Writes what is not written yet, and stops. */
  close(): Promise<void>;
}

const WRITE_AFTER_MS = 50;
const MAX_WAITING = 1_000;
/** Characters; real ones have a few thousand. */
const MAX_SIGNATURE = 64 * 1024;
const MAX_BATCH = 500;
const MAX_ROWS = 50_000;
const PURGE_MS = 3_600_000;
/** Of one request: a conversation longer than this has its oldest calls forgotten. */
const MAX_LOOKED_UP = 1000;

export function durableMemory(store: SignatureRows, sealer: Sealer, clock: Clock, logger: Logger): DurableMemory {
  const near = thoughtMemory();
  const waiting = new Map<string, string>();
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  const purging = setInterval(purge, PURGE_MS);
  purging.unref();
  purge();

  function purge(): void {
    store.purge({ now: rfc3339(clock.now()), most: MAX_ROWS }).catch(complain);
  }

  function complain(error: unknown): void {
    logger.warn("gateway.signatures_failed", errorFields(error));
  }

  function write(): void {
    timer = null;
    writing = writing.then(writeAll).catch(complain);
  }

  async function writeAll(): Promise<void> {
    while (waiting.size > 0) {
      const batch = [...waiting].slice(0, MAX_BATCH);
      for (const [key] of batch) waiting.delete(key);
      const rows = batch.map(([key, text]) => ({ key, signature: sealer.seal(text, placeOf(key)) }));
      await store.keep({ rows, expires_at: rfc3339(clock.now() + DAY_MS) });
    }
  }

  return {
    recall: near.recall,
    keep(caller, id, signature) {
      near.keep(caller, id, signature);
      if (waiting.size >= MAX_WAITING || signature.length > MAX_SIGNATURE) return;
      waiting.set(sealer.digest(keyOf(caller, id)), signature);
      timer ??= setTimeout(write, WRITE_AFTER_MS);
    },
    async load(caller, ids) {
      const unknown = ids.filter((id) => near.recall(caller, id) === undefined).slice(-MAX_LOOKED_UP);
      if (unknown.length === 0) return;
      const byKey = new Map(unknown.map((id) => [sealer.digest(keyOf(caller, id)), id]));
      try {
        for (const { key, signature } of await store.find({ keys: [...byKey.keys()] })) {
          near.keep(caller, byKey.get(key) ?? "", sealer.open(signature, placeOf(key)));
        }
      } catch (error) {
        complain(error);
      }
    },
    async close() {
      clearInterval(purging);
      if (timer) clearTimeout(timer);
      write();
      await writing;
    },
  };
}

function placeOf(key: string): Place {
  return { tenant: "gateway", row: `gateway_signature:${key}`, field: "signature" };
}
