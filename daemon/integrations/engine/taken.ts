// Rows of an upsert that were refused for another row's value of a unique column. A row behind them may give it up: they are tried again
// at the end, backwards, for values that move on from row to row are free from the last one on.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "./destination.ts";
import { keyPlaces, keyText } from "./keys.ts";
import type { Row } from "./types.ts";

export interface TakenRow {
  readonly row: Row;
  /** In reading order, from 0. */
  readonly place: number;
  readonly reject: Reject;
}

export interface TakenRows {
  /** To be told before a row is written: an earlier row of the same key must not come behind it. */
  replacedBy(row: Row): void;
  /** False where no more can be held: it is rejected. */
  hold(taken: TakenRow): boolean;
  /** Tries them as long as one goes in; answers why the others do not. `put` answers what refuses a row, null where it is written. */
  settle(put: (row: Row, place: number) => Reject | null | Promise<Reject | null>): Promise<Reject[]>;
}

const MOST_ROWS = 10_000;
const MOST_BYTES = 16 << 20;

export function createTakenRows(plan: WritePlan): TakenRows {
  const places = keyPlaces(plan);
  const keyOf = (row: Row) => keyText(places.map((at) => row[at] ?? null));
  const held = new Map<string, TakenRow>();
  let bytes = 0;
  const drop = (key: string) => {
    const there = held.get(key);
    if (there) bytes -= sizeOf(there.row);
    held.delete(key);
  };
  return {
    replacedBy: (row) => {
      if (held.size > 0) drop(keyOf(row));
    },
    hold: (taken) => {
      const size = sizeOf(taken.row);
      if (plan.kind !== "upsert" || held.size >= MOST_ROWS || bytes + size > MOST_BYTES) return false;
      bytes += size;
      held.set(keyOf(taken.row), taken);
      return true;
    },
    settle: async (put) => {
      const waiting = [...held.values()];
      held.clear();
      bytes = 0;
      const left = await triedBackwards(waiting, async ({ row, place }) => {
        const reject = await put(row, place);
        return reject && { row, place, reject };
      });
      return left.sort((a, b) => a.place - b.place).map(({ reject }) => reject);
    },
  };
}

/** Tries the refused again as long as one goes in, those that are last first; answers what is left. `again` answers null for what went in. */
export async function triedBackwards<Refused>(
  refused: readonly Refused[],
  again: (one: Refused) => Promise<Refused | null>,
): Promise<Refused[]> {
  let left = [...refused];
  for (let before = Number.POSITIVE_INFINITY; left.length < before; ) {
    before = left.length;
    const still: Refused[] = [];
    for (const one of left.toReversed()) {
      const refusal = await again(one);
      if (refusal !== null) still.push(refusal);
    }
    left = still;
  }
  return left;
}

const sizeOf = (row: Row) => row.reduce((sum, value) => sum + (value?.length ?? 0), 100);
