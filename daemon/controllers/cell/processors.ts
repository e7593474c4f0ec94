// Which processors a cell may run on: one at least is kept free of those that take a core for themselves, and of those of which nothing is
// known yet. A nice value alone does not do: a scheduler that shares out by deadlines gives nobody credit for having slept, so that the
// daemon, interrupted for a moment by the very cell that it has just woken, finds a greedy one next on its processor, until the next tick.
import { readdirSync, readFileSync } from "node:fs";
import type { Kernel } from "./lockdown/kernel.ts";

export interface Processors {
  readonly all: readonly number[];
  /** Without those that are kept free. */
  readonly shared: readonly number[];
}

/** One processor in so many, at least one, is kept free. */
const FREE_ONE_IN = 4;

/** Null where there is but one processor, or the kernel does not tell. */
export function divideProcessors(kernel: Kernel): Processors | null {
  try {
    const all = kernel.processors();
    const free = Math.max(1, Math.floor(all.length / FREE_ONE_IN));
    return all.length > 1 ? { all, shared: all.slice(free) } : null;
  } catch {
    return null;
  }
}

/** V8's threads in the daemon, which collect and compile in the background, leave the free processors to the thread that answers. */
export function moveBackgroundThreads(kernel: Kernel, { shared }: Processors): void {
  for (const thread of threadsOf(process.pid)) if (isBackground(thread)) attempt(() => kernel.keepTo(shared, thread));
}

function isBackground(thread: number): boolean {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, "latin1").includes("V8Worker");
  } catch {
    return false;
  }
}

export function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** A thread may have just ended; and a kernel that refuses leaves it where it was. */
export function attempt(step: () => void): void {
  try {
    step();
  } catch {}
}
