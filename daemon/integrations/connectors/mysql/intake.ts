// The ways that rows take into the table: as they come, parents before their children, or many at a time; and those that are refused for
// another row's value a second time.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "../../engine/destination.ts";
import { lastOfEach } from "../../engine/keys.ts";
import type { TakenRow, TakenRows } from "../../engine/taken.ts";
import type { Row } from "../../engine/types.ts";
import type { Orphans, PlacedRow } from "./orphans.ts";

/** Writes rows; answers those that are refused. `placeOf`: their numbers in reading order, from 0. */
export type Put = (rows: readonly Row[], placeOf: (at: number) => number) => Promise<readonly Reject[]>;

export interface Intake {
  /** Takes rows, some of which may wait; answers what is refused by then. */
  readonly take: Put;
  /** False while rows wait for others that may still come. */
  mayCommit(): Promise<boolean>;
  /** Writes whatever still waits. */
  finish(): Promise<readonly Reject[]>;
}

export function asTheyCome(put: Put): Intake {
  return { take: put, mayCommit: async () => true, finish: async () => [] };
}

/** Into a table that refers to itself. */
export function parentsFirst(put: Put, orphans: Orphans): Intake {
  // Of the rows that have waited for others, when it was looked whether all could be committed.
  const refused: Reject[] = [];
  const putPlaced = (placed: readonly PlacedRow[]) =>
    put(
      placed.map(({ row }) => row),
      (at) => placed[at]?.place as number,
    );
  const finish = async () => {
    const rejects = await putPlaced(await orphans.release());
    return [...refused.splice(0), ...rejects, ...orphans.doubled()];
  };
  return {
    take: async (rows, placeOf) => {
      const rejects = await putPlaced(await orphans.admit(rows.map((row, at) => ({ row, place: placeOf(at) }))));
      return orphans.full ? [...rejects, ...(await finish())] : rejects;
    },
    mayCommit: async () => {
      refused.push(...(await putPlaced(await orphans.settled())));
      return !orphans.waiting;
    },
    finish,
  };
}

const HELD_ROWS = 20_000;
const HELD_SIZE = 8 << 20;

/** For merges that read the whole table, each of them: rows wait until they are many. */
export function manyAtATime(put: Put): Intake {
  let held: Row[] = [];
  let places: number[] = [];
  let size = 0;
  const finish = async () => {
    if (held.length === 0) return [];
    const [rows, placesOfRows] = [held, places];
    held = [];
    places = [];
    size = 0;
    return put(rows, (at) => placesOfRows[at] as number);
  };
  return {
    take: async (rows, placeOf) => {
      for (const [at, row] of rows.entries()) {
        held.push(row);
        places.push(placeOf(at));
        for (const value of row) size += value?.length ?? 0;
      }
      return held.length >= HELD_ROWS || size >= HELD_SIZE ? finish() : [];
    },
    mayCommit: async () => true,
    finish,
  };
}

/** What one way of writing answers, once rows are held back that a later row may make room for. */
export function holdingTaken(
  write: (...rows: Parameters<Put>) => Promise<{ rejects: readonly Reject[]; taken: readonly TakenRow[] }>,
  held: TakenRows,
  plan: WritePlan,
): Put {
  return async (rows, placeOf) => {
    for (const row of rows) held.replacedBy(row);
    const { rejects, taken } = await write(rows, placeOf);
    if (taken.length === 0) return rejects;
    // A later row of its key stands in for one that was refused.
    const latest = new Set(lastOfEach(rows, plan).map((at) => rows[at]));
    const later = new Set(taken.filter((one) => !latest.has(one.row) || held.hold(one)).map(({ reject }) => reject));
    return rejects.filter((reject) => !later.has(reject));
  };
}

/** Behind the last row those that are held come again, one by one. */
export function triedAgain(intake: Intake, put: Put, held: TakenRows): Intake {
  return {
    ...intake,
    finish: async () => [
      ...(await intake.finish()),
      ...(await held.settle(async (row, place) => (await put([row], () => place))[0] ?? null)),
    ],
  };
}
