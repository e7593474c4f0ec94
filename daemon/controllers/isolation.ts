// Which lockdown this machine can give, found out by starting a zygote and asking it: said in `magic doctor`, in every invocation's log line,
// and the reason why controllers are refused where it is too little.
import { MagicError } from "#contract/errors.ts";
import type { Isolation } from "#contract/wire/daemon.ts";
import { type Cell, CellGone, startCell } from "./cell/cell.ts";
import { startFailure } from "./cell/entries.ts";
import { allLayers, type Layers } from "./cell/lockdown/boot.ts";
import { thisArchitecture } from "./cell/lockdown/syscalls.ts";

/** Proven: the probes ran on it. */
const PROVEN_ARCHITECTURE = "x64";
/** Without any kernel help: Node's permission model, which its documentation calls a seat belt, and a process of its own. */
const weakLayers: Layers = { ...allLayers, kernel: false, seccomp: false, landlock: false };

export interface CellStarter {
  /**
   * Starts a zygote with what this machine can lock down. Throws `sandbox_unavailable` where there is no kernel lockdown and nobody allowed
   * to go without.
   */
  start(): Promise<Cell>;
  /** Why cells are weak here, or are none; null where they are locked down. */
  why(): string | null;
}

export function cellStarter(allowWeak: boolean): CellStarter {
  let why = thisArchitecture() === null ? `${process.platform}-${process.arch} has no seccomp` : null;
  return {
    async start() {
      if (why === null)
        try {
          return await startCell(allLayers);
        } catch (error) {
          if (!(error instanceof CellGone) || error.reason !== "unavailable") throw await cannotStart(error);
          // A kernel does not learn it later: what follows is not tried again.
          why = error.message;
        }
      if (allowWeak)
        return await startCell(weakLayers).catch(async (error) => {
          throw await cannotStart(error);
        });
      throw new MagicError("sandbox_unavailable", `${why}: controllers run here only with --allow-weak-sandbox`);
    },
    why: () => why,
  };
}

async function cannotStart(why: unknown): Promise<unknown> {
  return why instanceof CellGone ? await startFailure("a cell could not be started", why.message) : why;
}

/** Where no controller may run. */
export function noIsolation(why: string): Isolation {
  return { level: "none", layers: [{ name: "seccomp", active: false, detail: why }] };
}

/** `why`: what the machine lacks, where the cell is a weak one. */
export function isolationOf({ hello, layers }: Cell, why: string | null): Isolation {
  const { missing, landlock } = hello;
  const lacks = (name: string): string | undefined => missing.find((entry) => entry.startsWith(`${name}:`));
  const layer = (name: string, active: boolean, detail?: string) => ({ name, active, ...(detail ? { detail } : {}) });
  const kernel = layers.kernel;
  const listed = [
    layer("seccomp", kernel && layers.seccomp, kernel ? undefined : (why ?? "not asked for")),
    layer("landlock", landlock > 0, landlock > 0 ? `ABI ${landlock}` : (lacks("landlock") ?? "not asked for")),
    layer("resource limits", kernel, kernel ? undefined : (why ?? "not asked for")),
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
