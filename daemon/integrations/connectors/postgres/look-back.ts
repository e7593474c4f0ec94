// Where a server does not tell which rows are new (a view, a foreign table), an incremental run reads again what is shortly before
// its cursor: rows of writers that committed late are found, and the primary key makes reading a row twice harmless.
import type { Column } from "../../engine/types.ts";

const LOOK_BACK = { seconds: 3600, numbers: 10_000 } as const;

/**
 * The condition for rows after `since`, a SQL expression of the cursor's type, or null where no row had a cursor yet. With a key also
 * what lies shortly before it, and what has no cursor; without one each row once.
 */
export function lookBack(field: string, since: string | null, column: Column, keyed: boolean): string | null {
  if (!keyed) return since === null ? `${field} IS NOT NULL` : `${field} > ${since}`;
  return since === null ? null : `(${shortlyBefore(field, since, column)} OR ${field} IS NULL)`;
}

function shortlyBefore(field: string, since: string, column: Column): string {
  const { kind } = column.type;
  if (kind === "timestamp") return `${field} >= ${since} - interval '${LOOK_BACK.seconds} seconds'`;
  if (kind === "date") return `${field} >= ${since} - 1`;
  if (kind === "int" || kind === "decimal") return `${field}::numeric >= ${since}::numeric - ${LOOK_BACK.numbers}`;
  if (kind === "float") return `${field} >= ${since} - ${LOOK_BACK.numbers}`;
  return `${field} >= ${since}`;
}
