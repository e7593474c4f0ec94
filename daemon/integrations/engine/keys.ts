// Primary keys that somebody asked for: nobody vouches that they are unique and never null.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "./destination.ts";
import { keyOf } from "./rejects.ts";
import type { Row, Value } from "./types.ts";

/** Why one of two records of a full refresh is not there. */
export const DOUBLED = "another row has the same primary key; the last one was kept";

export interface KeyedRows {
  readonly rows: readonly Row[];
  /** Of each of the rows, in reading order from 0. */
  readonly place: (at: number) => number;
  readonly rejects: readonly Reject[];
}

/** True where both name the same columns, in whatever order. */
export function sameKey(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name) => other.includes(name));
}

/** True where a table that is filled anew has the key that the sync gave it, and the sync has another one now. */
export function outlived(key: readonly string[], { kind, formerKey, primaryKey }: WritePlan): boolean {
  return (
    kind === "replace" && key.length > 0 && formerKey !== null && sameKey(key, formerKey) && !sameKey(key, primaryKey)
  );
}

/** The rows that have a key: one whose key is null cannot be told from others, and would come again at every run. */
export function keyedRows(rows: readonly Row[], plan: WritePlan, placeOf: (at: number) => number): KeyedRows {
  const columns = plan.keyCertain ? [] : keyPlaces(plan);
  const missing = (row: Row) => columns.find((column) => (row[column] ?? null) === null);
  if (columns.length === 0 || rows.every((row) => missing(row) === undefined))
    return { rows, place: placeOf, rejects: [] };
  const name = keyOf(plan);
  const rejects: Reject[] = [];
  const places: number[] = [];
  const keyed = rows.filter((row, at) => {
    const column = missing(row);
    if (column === undefined) {
      places.push(placeOf(at));
      return true;
    }
    rejects.push({
      key: name(row, placeOf(at)),
      column: plan.columns[column]?.name ?? null,
      reason: "the primary key is null",
    });
    return false;
  });
  return { rows: keyed, place: (at) => places[at] as number, rejects };
}

/** Of several rows of one key the last. */
export function lastOfEach(rows: readonly Row[], plan: WritePlan): readonly number[] {
  const places = keyPlaces(plan);
  const last = new Map(rows.map((row, at) => [keyText(places.map((place) => row[place] ?? null)), at]));
  return last.size === rows.length ? rows.map((_, at) => at) : [...last.values()].sort((a, b) => a - b);
}

export function keyText(values: readonly Value[]): string {
  return JSON.stringify(
    values.map((value) => (typeof value === "string" || value === null ? value : Buffer.from(value).toString("hex"))),
  );
}

/** True where several rows of the asked-for key may be read, of which the one with the greatest cursor counts: it must come last. */
export function readInOrder(
  request: { readonly mode: string; readonly primaryKey: readonly string[] | null },
  declared: readonly string[],
): boolean {
  const { primaryKey } = request;
  if (request.mode !== "incremental" || primaryKey === null) return false;
  return declared.length === 0 || !declared.every((name) => primaryKey.includes(name));
}

/** Where the key's columns stand in a row. */
export function keyPlaces(plan: WritePlan): readonly number[] {
  return plan.primaryKey.map((key) => plan.columns.findIndex(({ name }) => name === key));
}
