// How far a sync into an HTTP endpoint has come, which the endpoint cannot keep: the daemon's store does, or for a command a file.
import type { StateKeeper } from "#contract/sync.ts";
import type { CommittedState, OpenRequest } from "../../engine/destination.ts";
import { lockFile } from "../files/lock.ts";
import { openStateFile } from "../files/state.ts";

export interface EndpointState {
  /** As it was when it was opened. */
  readonly committed: CommittedState;
  /** Resolves when it is durable. */
  keep(committed: CommittedState): Promise<void>;
  release(): void;
}

/** null: nobody keeps it. */
export async function openState(request: OpenRequest, keeper: StateKeeper | undefined): Promise<EndpointState | null> {
  const { stateFile, stream } = request;
  if (keeper) {
    const inStore = <T>(asked: Promise<T>): Promise<T> => {
      request.waiting("the daemon's storage");
      return asked;
    };
    const kept = (await inStore(keeper.read())) as CommittedState | null;
    return {
      committed: kept ?? { state: null, schema: null },
      keep: (committed) => inStore(keeper.save(committed)),
      release() {},
    };
  }
  if (stateFile === null) return null;
  const release = await lockFile(stateFile, request);
  const file = await openStateFile(stateFile, request.syncId, null, (work) => work());
  return {
    committed: file.committed(stream),
    keep: (committed) => file.commit({ stream, committed }),
    release,
  };
}
