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
  /** To be told before rows are written: an earlier row of the same key must not come behind them. */
  replacedBy(rows: readonly Row[]): void;
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
    replacedBy: (rows) => {
      if (held.size > 0) for (const row of rows) drop(keyOf(row));
    },
    hold: (taken) => {
      bytes += sizeOf(taken.row);
      if (plan.kind !== "upsert" || held.size >= MOST_ROWS || bytes > MOST_BYTES) {
        bytes -= sizeOf(taken.row);
        return false;
      }
      held.set(keyOf(taken.row), taken);
      return true;
    },
    settle: async (put) => {
      let waiting = [...held.values()];
      held.clear();
      bytes = 0;
      for (let before = Number.POSITIVE_INFINITY; waiting.length < before; ) {
        before = waiting.length;
        const refused: TakenRow[] = [];
        for (const { row, place } of waiting.toReversed()) {
          const reject = await put(row, place);
          if (reject) refused.push({ row, place, reject });
        }
        waiting = refused;
      }
      return waiting.sort((a, b) => a.place - b.place).map(({ reject }) => reject);
    },
  };
}

const sizeOf = (row: Row) => row.reduce((sum, value) => sum + (value?.length ?? 0), 100);
