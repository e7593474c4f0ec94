// Where a server does not tell which rows are new (a view, a foreign table), an incremental run reads again what is shortly before
// its cursor: rows of writers that committed late are found, and the primary key makes reading a row twice harmless.
import type { Column } from "../../engine/types.ts";

const LOOK_BACK = { seconds: 3600, numbers: 10_000 } as const;

/** The condition for rows after `since`, with a look-back where rows have a key. `since` is a SQL expression of the cursor's type. */
export function lookBack(field: string, since: string, column: Column, keyed: boolean): string {
  if (!keyed) return `${field} > ${since}`;
  if (column.type.kind === "timestamp") return `${field} >= ${since} - interval '${LOOK_BACK.seconds} seconds'`;
  if (column.type.kind === "date") return `${field} >= ${since} - 1`;
  if (column.type.kind === "int") return `${field}::numeric >= ${since}::numeric - ${LOOK_BACK.numbers}`;
  return `${field} >= ${since}`;
}
