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

export interface LockOutcome {
  readonly layers: Readonly<Record<string, boolean>>;
}

/** Prepares the lock while files can still be read; the returned function turns it, once. */
export function prepareLock(boot: StageZeroOutcome): (memoryBytes: number) => LockOutcome {
  const architecture = thisArchitecture();
  const kernel = boot.layers.kernel && architecture !== null ? openKernel(architecture) : null;
  const filter =
    boot.layers.seccomp && kernel && architecture !== null ? strictFilter(architecture, process.pid) : null;
  const permission = process.permission as DroppablePermission | undefined;
  return (memoryBytes) => {
    if (kernel) limitResources(kernel, memoryBytes, boot);
    const landlock = kernel && boot.landlock > 0 ? kernel.landlock([]) : 0;
    if (kernel && filter) kernel.seccomp(filter);
    const dropped = dropPermissions(permission);
    return {
      layers: {
        rlimits: kernel !== null,
        landlock: landlock > 0,
        seccomp: filter !== null,
        permission: dropped,
        realm: boot.layers.realm,
      },
    };
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

/** True where Node's permission model is on, and nothing of it remains granted. */
function dropPermissions(permission: DroppablePermission | undefined): boolean {
  if (!permission?.drop) return false;
  for (const scope of SCOPES) permission.drop(scope);
  return true;
}
