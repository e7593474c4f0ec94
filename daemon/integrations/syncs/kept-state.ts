// How far a sync into an endpoint that cannot keep it has come: in the store, where every daemon on it finds it.
import { MagicError } from "#contract/errors.ts";
import type { StateKeeper } from "#contract/sync.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { SyncRecord } from "#daemon/storage/tables/sync.ts";

export interface KeptState extends StateKeeper {
  /** Another process has gone on from where this one stands: what this one does counts no longer. */
  overtaken(): boolean;
}

/** Of one run. `patiently` does again what failed because the store was away for a while. */
export function createKeptState(
  { state, keepState }: Storage["units"]["sync"],
  { id: sync_id, source_object: stream }: Pick<SyncRecord, "id" | "source_object">,
  patiently: <T>(work: () => Promise<T>) => Promise<T>,
): KeptState {
  let revision = 0;
  let overtaken = false;
  return {
    overtaken: () => overtaken,
    async read() {
      const kept = await patiently(() => state({ sync_id, stream }));
      revision = kept?.revision ?? 0;
      return kept && JSON.parse(kept.body);
    },
    async save(reached) {
      const body = JSON.stringify(reached);
      overtaken = !(await patiently(() => keepState({ sync_id, stream, body, revision })));
      if (overtaken) throw new MagicError("conflict", "Another daemon has gone on with this sync meanwhile.");
      revision++;
    },
  };
}
