// Under which ids the daemon of this root says that it lives, where daemons share a database: one root has one daemon at a time, so that
// whoever starts there knows that its predecessor's are dead, and need not wait until they count as such. A copy of a root is another root.
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import type { Storage } from "./storage.ts";

const NAME = "daemon.processes";

/** Before the daemon says that it lives under this id. What cannot be noted counts as alive a while longer. */
export function noteProcess(state: string, process: string): void {
  try {
    appendFileSync(join(state, NAME), `${process} ${state}\n`, { mode: 0o600 });
  } catch {}
}

/** What the daemon that was here before had under way is under way no longer. */
export async function endPredecessor(
  state: string,
  { idempotency, job }: Pick<Storage["units"], "idempotency" | "job">,
  clock: Clock,
): Promise<void> {
  const now = rfc3339(clock.now());
  for (const process of noted(state)) {
    await idempotency.live({ process, now, until: now });
    await job.releaseOf({ owner: process });
  }
  rmSync(join(state, NAME), { force: true });
}

function noted(state: string): string[] {
  try {
    const lines = readFileSync(join(state, NAME), "utf8").split("\n");
    return lines.flatMap((line) => {
      const [, process, place] = /^(proc_\w+) (.*)$/.exec(line) ?? [];
      return process !== undefined && place === state ? [process] : [];
    });
  } catch {
    return [];
  }
}
