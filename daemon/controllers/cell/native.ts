// What the daemon itself asks of libc on behalf of its cells; null where Node's own means must do.
import { lazy } from "#shared/lazy.ts";
import type { Kernel } from "./lockdown/kernel.ts";
import type { Processes } from "./lockdown/process.ts";
import { thisArchitecture } from "./lockdown/syscalls.ts";
import { divideProcessors, moveBackgroundThreads, type Processors } from "./processors.ts";

export interface Native {
  readonly kernel: Kernel;
  /** Null where there is nothing to share out. */
  readonly processors: Processors | null;
  /** Null where libc lacks a function. */
  readonly processes: Processes | null;
}

/** Loaded with the first cell: a daemon without controllers needs none of it. */
export const native = lazy(open);

async function open(): Promise<Native | null> {
  const architecture = thisArchitecture();
  if (architecture === null) return null;
  // It warns that it is experimental, on the standard error of whoever started the daemon.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  process.getBuiltinModule("node:ffi");
  process.emitWarning = emitWarning;
  const [{ openKernel }, { openProcesses }] = await Promise.all([
    import("./lockdown/kernel.ts"),
    import("./lockdown/process.ts"),
  ]);
  const kernel = openKernel(architecture);
  const processors = divideProcessors(kernel);
  if (processors) moveBackgroundThreads(kernel, processors);
  return { kernel, processors, processes: orNull(openProcesses) };
}

function orNull<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}
