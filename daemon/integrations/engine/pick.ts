// The columns and the key that a run asked for, out of what an object has.
import { MagicError } from "#contract/errors.ts";
import type { ReadRequest } from "./source.ts";
import type { Column } from "./types.ts";

interface Picked<C> {
  readonly columns: readonly C[];
  readonly primaryKey: readonly string[];
}

/** Throws object_not_found for a column that is not there. Without an asked-for key: the declared one, where all of it is read. */
export function pickColumns<C extends Column>(
  table: Picked<C>,
  request: Pick<ReadRequest, "columns" | "primaryKey">,
  name: string,
): Picked<C> {
  const find = (wanted: string, as: string) => {
    const column = table.columns.find((one) => one.name === wanted);
    if (!column)
      throw new MagicError(
        "object_not_found",
        `${name} has no column ${JSON.stringify(wanted)}, which is named as ${as}. It has: ${table.columns.map((one) => one.name).join(", ")}.`,
      );
    return column;
  };
  const columns =
    request.columns === null ? table.columns : request.columns.map((wanted) => find(wanted, "a column to sync"));
  for (const wanted of request.primaryKey ?? []) find(wanted, "primary key");
  const declared = table.primaryKey.every((wanted) => columns.some((one) => one.name === wanted))
    ? table.primaryKey
    : [];
  return { columns, primaryKey: request.primaryKey ?? declared };
}
