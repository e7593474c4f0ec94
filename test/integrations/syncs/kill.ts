// Kills sync workers at seeded moments of their runs, and starts them again until one ends by itself.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { SyncOutcome, SyncSpec, SyncWorkerReply } from "#contract/sync.ts";

/** A small seeded generator (mulberry32): the same kills for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Runs a worker; kills it with SIGKILL `afterMs` after it was given its work, if it has not ended by then. */
export function runAndKill(spec: SyncSpec, afterMs: number | null): Promise<SyncOutcome | "killed"> {
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(import.meta.resolve("#entry/sync-worker")), [], {
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    let outcome: SyncOutcome | undefined;
    let timer: NodeJS.Timeout | undefined;
    worker.on("message", (reply: SyncWorkerReply) => {
      // Counted from here, so that kills fall into the run and not into the start of Node.
      if (reply.type === "ready" && afterMs !== null) timer = setTimeout(() => worker.kill("SIGKILL"), afterMs);
      if (reply.type === "done") outcome = reply.outcome;
    });
    worker.on("error", reject);
    worker.on("exit", () => {
      clearTimeout(timer);
      resolve(outcome ?? "killed");
    });
    worker.send({ type: "run", spec });
  });
}
