// What every source says of a cursor field that cannot do a cursor's work.
import { MagicError } from "#contract/errors.ts";
import type { SyncFailure } from "#contract/sync.ts";
import type { Column } from "./types.ts";

const endless = /^(inf(inity)?|nan)$/i;
const ordered = new Set(["int", "decimal", "float", "date", "timestamp"]);

/** The column of an incremental run's cursor field; throws validation_failed where none is named, or there is none of that name. */
export function cursorColumn<C extends { readonly name: string }>(columns: readonly C[], field: string | null): C {
  const column = columns.find(({ name }) => name === field);
  if (column) return column;
  throw new MagicError(
    "validation_failed",
    field === null
      ? "An incremental sync needs a cursor field: name one with --cursor-field (`cursor_field`)."
      : `There is no column ${JSON.stringify(field)} for the cursor.`,
  );
}

/** Throws validation_failed where the greatest value is one after which nothing can come: no later record would ever be read. */
export function checkReachable(greatest: string | null, column: Column, object: string): void {
  if (greatest === null || !ordered.has(column.type.kind) || !endless.test(greatest)) return;
  throw new MagicError(
    "validation_failed",
    `The cursor field ${JSON.stringify(column.name)} of ${object} holds ${greatest}, after which nothing can come: name another cursor field, or use full_refresh.`,
  );
}

/** Without a key such records cannot be told from those that were read before. */
export function nullCursorWarning(field: string, object: string): SyncFailure {
  return {
    code: "null_cursor",
    message: `Some records of ${object} have no value in the cursor field ${JSON.stringify(field)}. Without a primary key only the first run reads such records: name one with --primary-key, or use full_refresh.`,
  };
}

/** What had the last run's greatest value has gone, so the object may be another one. With a key all of it is read then. */
export function cursorWentBackWarning(field: string, object: string, before: string): SyncFailure {
  return {
    code: "cursor_went_back",
    message: `The greatest ${JSON.stringify(field)} of ${object} was ${before.slice(0, 60)} and is lower now. Without a primary key only records beyond it are read: if the object was made anew, run a full refresh, or name a key.`,
  };
}
