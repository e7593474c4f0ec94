// Names of columns that differ in case only, in databases that take them for one.
import { MagicError } from "#contract/errors.ts";
import type { Column } from "./types.ts";

/** As SQLite compares them; MySQL takes more letters for the same, and says so itself. */
const folded = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** @throws MagicError `validation_failed` where two of the columns, or one and another one of `table`, would be one in `database`. */
export function refuseAlike(
  columns: readonly Column[],
  there: readonly Column[],
  table: string,
  database: "MySQL" | "SQLite",
): void {
  const seen = new Map(there.map(({ name }) => [folded(name), name]));
  const existing = new Set(there.map(({ name }) => name));
  for (const { name } of columns) {
    const other = seen.get(folded(name));
    if (other !== undefined && other !== name)
      throw new MagicError(
        "validation_failed",
        existing.has(other)
          ? `${table} has a column ${JSON.stringify(other)}, which ${database} does not tell from ${JSON.stringify(name)}: map the column to that name, or leave it out.`
          : `${database} does not tell the columns ${JSON.stringify(other)} and ${JSON.stringify(name)} apart: map one to another name, or leave it out.`,
      );
    seen.set(folded(name), name);
  }
}
