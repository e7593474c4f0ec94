// Who comes first where processors are scarce: the daemon and cells that answer, before cells that take a core for themselves and cells of
// which nothing is known yet. None of it needs a privilege.
import { closeSync, openSync, writeSync } from "node:fs";
import { setPriority } from "node:os";
import type { Kernel } from "./lockdown/kernel.ts";
import { type Native, native } from "./native.ts";
import { attempt, threadsOf } from "./processors.ts";

export interface Standing {
  /** It has answered quickly for a while: it may run on every processor. */
  trust(): void;
  /** All threads of the process, and its session among the machine's others. */
  stepBack(): void;
  close(): void;
}

/** Enough to go on computing on a crowded machine, a tenth of what the others get. */
const NICE = 10;
/** Whoever wakes interrupts one that asks for so long. */
const SLICE_MS = 100;

/**
 * For a process that has just been started: later, the session's file belongs to root. Returns the descriptor of that file, null where
 * there is none. `libc`: null where nice values must do.
 */
export function newcomer(pid: number, libc: Native | null): number | null {
  keepTo("shared", pid, libc);
  return openSession(pid);
}

/** `session`: what newcomer() returned. */
export function openStanding(pid: number, libc: Native | null, session: number | null): Standing {
  const kernel = libc?.kernel ?? null;
  return {
    trust: () => keepTo("all", pid, libc),
    stepBack() {
      keepTo("shared", pid, libc);
      if (session !== null) attempt(() => writeSync(session as number, String(NICE)));
      putBehind(threadsOf(pid), kernel);
    },
    close() {
      if (session !== null) closeSync(session);
      session = null;
    },
  };
}

function keepTo(which: "all" | "shared", pid: number, libc: Native | null): void {
  if (!libc?.processors) return;
  const { kernel, processors } = libc;
  for (const thread of threadsOf(pid)) attempt(() => kernel.keepTo(processors[which], thread));
}

/** For a process of the daemon, just started in a session of its own, that computes for handlers: behind their cells and the daemon from the first. */
export async function startedBehind(pid: number): Promise<void> {
  const libc = await native();
  const standing = openStanding(pid, libc, openSession(pid));
  standing.stepBack();
  standing.close();
}

/** The threads of the daemon itself that `start` starts: behind everybody else's, and not on a processor that is kept free. */
export function startBehind<T>(start: () => T): T {
  const before = new Set(threadsOf(process.pid));
  const started = start();
  const threads = threadsOf(process.pid).filter((thread) => !before.has(thread));
  void native().then((libc) => {
    const shared = libc?.processors?.shared;
    if (shared) for (const thread of threads) attempt(() => libc.kernel.keepTo(shared, thread));
    putBehind(threads, libc?.kernel ?? null);
  });
  return started;
}

function putBehind(threads: readonly number[], kernel: Kernel | null): void {
  for (const thread of threads)
    attempt(() => (kernel ? kernel.schedule(thread, NICE, SLICE_MS) : setPriority(thread, NICE)));
}

/** Where the kernel groups by sessions (CONFIG_SCHED_AUTOGROUP), the nice value of a cell's group counts before those in it. */
function openSession(pid: number): number | null {
  try {
    return openSync(`/proc/${pid}/autogroup`, "w");
  } catch {
    return null;
  }
}
