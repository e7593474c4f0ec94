// Stage 1 of a cell: the last step before the controller's code. Afterwards the process has no files, no network, no processes, no threads
// to make, no descriptor but its channel and its log pipe, a bounded memory, and no way back.
import type { StageZeroOutcome } from "./boot.ts";
import { type Kernel, openKernel, resource } from "./kernel.ts";
import { limitMemory } from "./memory.ts";
import { strictFilter } from "./policy.ts";
import { thisArchitecture } from "./syscalls.ts";

/** Descriptors that a cell may ever hold: libuv's own, the channel, the three standard ones. */
const MAX_FILES = 64;
const SCOPES = ["fs", "net", "child", "addon", "worker", "wasi", "ffi", "inspector"] as const;

/** Prepares the lock while files can still be read; the returned function turns it, once. */
export function prepareLock(boot: StageZeroOutcome): (memoryBytes: number) => void {
  const architecture = thisArchitecture();
  const kernel = boot.layers.kernel && architecture !== null ? openKernel(architecture) : null;
  const filter =
    boot.layers.seccomp && kernel && architecture !== null ? strictFilter(architecture, process.pid) : null;
  const permission = process.permission as DroppablePermission | undefined;
  return (memoryBytes) => {
    if (kernel) limitResources(kernel, memoryBytes, boot);
    if (kernel && boot.landlock > 0) kernel.landlock([]);
    if (kernel && filter) kernel.seccomp(filter);
    dropPermissions(permission);
  };
}

function limitResources(kernel: Kernel, memoryBytes: number, { missing }: StageZeroOutcome): void {
  // What the machine lacked a moment ago, it lacks now, and the daemon has said so.
  if (!missing.some((layer) => layer.startsWith("capabilities:"))) kernel.dropCapabilities();
  kernel.notDumpable();
  kernel.limit(resource.processes, 0);
  kernel.limit(resource.files, MAX_FILES);
  limitMemory(kernel, memoryBytes);
}

interface DroppablePermission {
  drop?(scope: string): void;
}

/** Nothing of Node's permission model remains granted, where it is on. */
function dropPermissions(permission: DroppablePermission | undefined): void {
  if (permission?.drop) for (const scope of SCOPES) permission.drop(scope);
}
