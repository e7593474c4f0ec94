// One worker process more than there is work for: what it takes to start one and to load its drivers is then done before a run or a check
// comes. It has been told nothing yet: no secret, no address. Each is used once, as every worker is.
import type { ChildProcess } from "node:child_process";
import type { SyncEnd, SyncWorkerRequest } from "#contract/sync.ts";
import { preloadKind } from "../connectors/open.ts";

export interface Workers {
  /** A worker, this one's for good; what its ends need is what the next one is made ready for. */
  take(...ends: readonly SyncEnd[]): ChildProcess;
  /** Ends the spare, and makes no other. */
  close(): void;
}

/** Whoever waits for the end of the work before is answered first. */
const PAUSE_MS = 100;
/** Nobody has needed it for so long: its memory is given back, and the next worker is a new one. */
const IDLE_MS = 60_000;

/** The spare is started once nobody works any more, and only after there was work. It keeps no process alive. */
export function keepSpare(start: () => ChildProcess, { idleMs = IDLE_MS, pauseMs = PAUSE_MS } = {}): Workers {
  const kinds = new Set<string>();
  let spare: { readonly worker: ChildProcess; readonly idle: NodeJS.Timeout } | undefined;
  let working = 0;
  let closed = false;

  return {
    take(...ends) {
      for (const kind of ends.map(preloadKind)) if (kind) kinds.add(kind);
      const worker = taken() ?? start();
      working++;
      worker.once("close", () => {
        working--;
        setTimeout(prepare, pauseMs).unref();
      });
      return worker;
    },
    close() {
      closed = true;
      taken()?.kill("SIGKILL");
    },
  };

  function prepare(): void {
    if (spare || working > 0 || closed) return;
    const worker = start();
    const gone = () => {
      if (spare?.worker !== worker) return;
      clearTimeout(spare.idle);
      spare = undefined;
    };
    worker.on("error", gone).on("exit", gone);
    // There was no descriptor left for it.
    if (!worker.connected) return;
    const idle = setTimeout(() => worker.kill("SIGKILL"), idleMs).unref();
    spare = { worker, idle };
    worker.send({ type: "warm", kinds: [...kinds] } satisfies SyncWorkerRequest, () => {});
    worker.unref();
    worker.channel?.unref();
  }

  function taken(): ChildProcess | undefined {
    if (!spare) return undefined;
    const { worker, idle } = spare;
    spare = undefined;
    clearTimeout(idle);
    if (!worker.connected) return undefined;
    worker.ref();
    worker.channel?.ref();
    return worker;
  }
}
