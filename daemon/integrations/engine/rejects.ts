// Rejected records: how one is named, how many are kept.
import { REJECTS_SHOWN, type Reject } from "#contract/sync.ts";
import type { WritePlan } from "./destination.ts";
import type { Row, Value } from "./types.ts";

/** Names a row by its primary key, else by its place in reading order (from 1). */
export function keyOf(plan: Pick<WritePlan, "columns" | "primaryKey">): (row: Row, place: number) => string {
  const places = plan.primaryKey.map((name) => plan.columns.findIndex((column) => column.name === name));
  if (places.length === 0 || places.includes(-1)) return (_row, place) => `row ${place + 1}`;
  return (row) => places.map((at) => shown(row[at] ?? null)).join(",");
}

function shown(value: Value): string {
  if (value === null) return "null";
  const text = typeof value === "string" ? value : `\\x${Buffer.from(value.subarray(0, 64)).toString("hex")}`;
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}

/** So many rejects, of which the first ones are told apart: nobody is shown the others. */
export function rejectsOf(shown: readonly Reject[], count: number): readonly Reject[] {
  const last = shown.at(-1);
  return last ? shown.concat(new Array<Reject>(count - shown.length).fill(last)) : [];
}

export interface RejectList {
  readonly count: number;
  /** The first ones. */
  readonly shown: readonly Reject[];
  add(rejects: readonly Reject[]): void;
}

export function createRejectList(): RejectList {
  const shown: Reject[] = [];
  let count = 0;
  return {
    get count() {
      return count;
    },
    shown,
    add: (rejects) => {
      count += rejects.length;
      for (const { key, column, reason } of rejects.slice(0, REJECTS_SHOWN - shown.length))
        shown.push({ key: storable(key), column: column && storable(column), reason: storable(reason) });
    },
  };
}

/** As every database keeps a text: PostgreSQL's have no NUL, and no JSON half of a surrogate pair, which a cut may leave. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
