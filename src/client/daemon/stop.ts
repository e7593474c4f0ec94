// Ends a root's daemon: asks it to drain, and kills it when it does not end in time.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runtimeNames } from "#contract/protocol.ts";
import { stateFolder } from "#shared/paths.ts";
import { isSameProcess } from "#shared/process-identity.ts";
import { readRuntimeFile, readStartingMark } from "./files.ts";

export interface Stopped {
  readonly stopped: boolean;
  /** The process that was ended; null when none ran. */
  readonly pid: number | null;
  /** True when it had to be killed. */
  readonly killed: boolean;
}

/** Milliseconds: its own drain takes 15 s at most. */
const PATIENCE = 20_000;

/** Also ends one that speaks another protocol, is wedged, or is still starting. */
export async function stopDaemon(root: string): Promise<Stopped> {
  const found = [readRuntimeFile(root), readStartingMark(root)].find(
    (one) => one !== undefined && isSameProcess(one.pid, one.pid_started),
  );
  if (!found) {
    removeStaleFiles(root);
    return { stopped: false, pid: null, killed: false };
  }
  const alive = () => isSameProcess(found.pid, found.pid_started);
  signal(found.pid, "SIGTERM");
  const until = performance.now() + PATIENCE;
  while (alive() && performance.now() < until) await sleep(20);
  const killed = alive();
  if (killed) {
    signal(found.pid, "SIGKILL");
    while (alive()) await sleep(20);
    removeStaleFiles(root);
  }
  return { stopped: true, pid: found.pid, killed };
}

/** Removes runtime files whose process is gone; one of a living process is never touched. */
export function removeStaleFiles(root: string): boolean {
  let removed = false;
  for (const [name, content] of [
    [runtimeNames.runtime, readRuntimeFile(root)],
    [runtimeNames.starting, readStartingMark(root)],
  ] as const) {
    if (!content || isSameProcess(content.pid, content.pid_started)) continue;
    rmSync(join(stateFolder(root), name), { force: true });
    removed = true;
  }
  return removed;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
