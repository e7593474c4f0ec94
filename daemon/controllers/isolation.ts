// Which lockdown this machine can give, found out by starting a zygote and asking it: said in `magic doctor`, in every invocation's log line,
// and the reason why controllers are refused where it is too little.
import { MagicError } from "#contract/errors.ts";
import type { Isolation } from "#contract/wire/daemon.ts";
import type { Cell } from "./cell/cell.ts";
import { allLayers, type Layers } from "./cell/lockdown/boot.ts";
import { thisArchitecture } from "./cell/lockdown/syscalls.ts";

/** Proven: the probes ran on it. */
const PROVEN_ARCHITECTURE = "x64";
/** Without any kernel help: Node's permission model, which its documentation calls a seat belt, and a process of its own. */
export const weakLayers: Layers = { ...allLayers, kernel: false, seccomp: false, landlock: false };

/** The layers to ask for here. Throws `sandbox_unavailable` where there is no kernel lockdown and nobody allowed to go without. */
export function wantedLayers(allowWeak: boolean): Layers {
  if (thisArchitecture() !== null) return allLayers;
  if (allowWeak) return weakLayers;
  throw new MagicError(
    "sandbox_unavailable",
    `${process.platform}-${process.arch} has no seccomp: controllers run here only with --allow-weak-sandbox`,
  );
}

export function isolationOf(cell: Cell, layers: Layers): Isolation {
  const { missing, landlock } = cell.hello;
  const lacks = (name: string): string | undefined => missing.find((entry) => entry.startsWith(`${name}:`));
  const layer = (name: string, active: boolean, detail?: string) => ({ name, active, ...(detail ? { detail } : {}) });
  const kernel = layers.kernel;
  const listed = [
    layer("seccomp", kernel && layers.seccomp, kernel ? undefined : "needs Linux on x86_64 or arm64"),
    layer("landlock", landlock > 0, landlock > 0 ? `ABI ${landlock}` : (lacks("landlock") ?? "not asked for")),
    layer("resource limits", kernel),
    layer("descriptors closed", kernel && !lacks("close_range"), lacks("close_range")),
    layer("capabilities dropped", kernel && !lacks("capabilities"), lacks("capabilities")),
    layer("Node permission model", layers.permission),
  ];
  return {
    level: levelOf(
      kernel,
      listed.every((one) => one.active),
    ),
    layers: listed,
  };
}

function levelOf(kernel: boolean, complete: boolean): string {
  if (!kernel) return "weak";
  if (!complete) return "reduced";
  return process.arch === PROVEN_ARCHITECTURE ? "strong" : "unproven";
}
