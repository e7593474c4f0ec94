// A change of what others may be changing too: read, changed, written if nobody came between, else again.
import { MagicError } from "#contract/errors.ts";
import { createTurns, inTurn } from "#shared/turns.ts";

/** Reads, changes and writes once; "stale" where somebody came between. */
type Attempt<T> = () => Promise<T | "stale">;

const TRIES = 50;

/** @throws MagicError `conflict` where somebody comes between every time. */
export async function untilKept<T>(noun: string, attempt: Attempt<T>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const kept = await attempt();
    if (kept !== "stale") return kept;
  }
  throw new MagicError("conflict", `The ${noun} is being changed by others: send it again.`);
}

/**
 * Changes of one kind of resource. Those that meet another go on in turn, and later ones behind them: however many come at once, each is made.
 * Until then none waits for another: where storage is away, all are refused together, not one after the other.
 */
export function changesOf(noun: string): <T>(id: string, attempt: Attempt<T>) => Promise<T> {
  const turns = createTurns();
  return async (id, attempt) => {
    const kept = turns.taken(id) ? "stale" : await attempt();
    return kept === "stale" ? inTurn(turns, id, () => untilKept(noun, attempt)) : kept;
  };
}
