// Stage 0 of a cell: what must hold before the real Node has threads and io_uring rings; then execve, same process, same descriptors.
// landlock covers only the calling thread and what it starts, and this process has few threads yet and becomes another program.
import { writeSync } from "node:fs";
import { BOOT_VARIABLE, type Boot, type StageZeroOutcome, UNAVAILABLE } from "./boot.ts";
import { CAP_DAC_READ_SEARCH, type Kernel, openKernel, resource } from "./kernel.ts";
import { earlyFilter } from "./policy.ts";
import { thisArchitecture } from "./syscalls.ts";

export function runStageZero(): void {
  const boot = JSON.parse(process.env[BOOT_VARIABLE] ?? "") as Boot;
  const outcome = boot.layers.kernel ? restrictOrEnd(boot) : { layers: boot.layers, landlock: 0, missing: [] };
  // `process.argv0` is this name, and cannot be changed: where the program lies is no handler's business.
  process.execve?.(boot.node, ["node", ...boot.flags, boot.zygote], {
    UV_THREADPOOL_SIZE: "1",
    OPENSSL_CONF: "/dev/null",
    [BOOT_VARIABLE]: JSON.stringify(outcome),
  });
}

/** Without seccomp or resource limits no controller runs: fail closed, and say what was missing. */
function restrictOrEnd(boot: Boot): StageZeroOutcome {
  try {
    return restrict(boot);
  } catch (error) {
    writeSync(2, (error as Error).message);
    process.exit(UNAVAILABLE);
  }
}

function restrict(boot: Boot): StageZeroOutcome {
  const architecture = thisArchitecture();
  if (architecture === null) throw new Error(`no lockdown for ${process.platform}-${process.arch}`);
  const kernel = openKernel(architecture);
  kernel.dieWithParent();
  if (process.ppid !== boot.parent) process.exit(1);
  kernel.noNewPrivileges();
  kernel.limit(resource.core, 0);
  kernel.limit(resource.fileSize, 0);
  const missing: string[] = [];
  let landlock = 0;
  if (boot.layers.landlock) attempt(missing, "landlock", () => (landlock = kernel.landlock(boot.readable)));
  attempt(missing, "capabilities", () => kernel.dropCapabilities(process.getuid?.() === 0 ? CAP_DAC_READ_SEARCH : 0));
  if (boot.layers.seccomp) kernel.seccomp(earlyFilter(architecture));
  attempt(missing, "close_range", () => inherit(kernel));
  return { layers: boot.layers, landlock, missing };
}

/** Only descriptors 0 to 3 pass on; Node hands down whatever the daemon itself inherited. */
function inherit(kernel: Kernel): void {
  kernel.keepOverExec(3);
  kernel.closeOnExecFrom(4);
}

function attempt(missing: string[], layer: string, step: () => void): void {
  try {
    step();
  } catch (error) {
    missing.push(`${layer}: ${(error as Error).message}`);
  }
}
