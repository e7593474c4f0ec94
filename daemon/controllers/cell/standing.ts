// Who comes first where processors are scarce: the daemon and cells that answer, before cells that take a core for themselves. To step back
// needs no privilege.
import { closeSync, openSync, readdirSync, writeSync } from "node:fs";
import { setPriority } from "node:os";
import type { Kernel } from "./lockdown/kernel.ts";

export interface Standing {
  /** All threads of the process, and its session among the machine's others. */
  stepBack(): void;
  close(): void;
}

/** Enough to go on computing on a crowded machine, a tenth of what the others get. */
const NICE = 10;
/** Whoever wakes interrupts one that asks for so long. */
const SLICE_MS = 100;

/** For a process that has just been started: later, the session's file belongs to root. `kernel`: null where nice values must do. */
export function openStanding(pid: number, kernel: Kernel | null): Standing {
  let session = openSession(pid);
  return {
    stepBack() {
      if (session !== null) attempt(() => writeSync(session as number, String(NICE)));
      for (const thread of threadsOf(pid))
        attempt(() => (kernel ? kernel.schedule(thread, NICE, SLICE_MS) : setPriority(thread, NICE)));
    },
    close() {
      if (session !== null) closeSync(session);
      session = null;
    },
  };
}

/** Where the kernel groups by sessions (CONFIG_SCHED_AUTOGROUP), the nice value of a cell's group counts before those in it. */
function openSession(pid: number): number | null {
  try {
    return openSync(`/proc/${pid}/autogroup`, "w");
  } catch {
    return null;
  }
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** It may have just ended; and a kernel that refuses leaves it where it was. */
function attempt(step: () => void): void {
  try {
    step();
  } catch {}
}
