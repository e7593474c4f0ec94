// SQLite's errors as ours.
import { isMagicError, MagicError } from "#contract/errors.ts";

/** `errcode` is SQLite's extended result code, as node:sqlite carries it. */
interface SqliteError extends Error {
  readonly code?: string;
  readonly errcode?: number;
}

/** The low byte is the primary code: https://sqlite.org/rescode.html */
function primaryCode(thrown: unknown): number {
  return ((thrown as SqliteError).errcode ?? 0) & 0xff;
}

export function sqliteError(thrown: unknown, side: "source" | "destination", path: string): MagicError {
  if (isMagicError(thrown)) return thrown;
  const error = thrown as SqliteError;
  const message = `${side} SQLite file ${path}: ${error instanceof Error ? error.message : String(thrown)}`;
  const primary = primaryCode(error);
  // 3 SQLITE_PERM, 8 READONLY, 10 IOERR, 13 FULL, 14 CANTOPEN, 23 AUTH, 26 NOTADB
  if (primary === 3 || primary === 23) return new MagicError("permission_denied", message, { cause: thrown });
  if (side === "destination" && (primary === 8 || primary === 13 || primary === 10))
    return new MagicError("destination_refused", message, { cause: thrown });
  if (primary === 14)
    return new MagicError(side === "source" ? "object_not_found" : "destination_refused", message, { cause: thrown });
  if (/no such table/.test(message)) return new MagicError("object_not_found", message, { cause: thrown });
  return new MagicError(side === "source" ? "source_failed" : "destination_refused", message, { cause: thrown });
}

/** SQLITE_CONSTRAINT (19), MISMATCH (20), TOOBIG (18), RANGE: a matter of this row alone. */
export function isRowError(thrown: unknown): thrown is Error {
  if (thrown instanceof RangeError) return true;
  const code = primaryCode(thrown);
  return code === 19 || code === 20 || code === 18;
}

/** SQLITE_CONSTRAINT_UNIQUE or _PRIMARYKEY: another row has the value. */
export function isTaken(thrown: unknown): boolean {
  const { errcode } = thrown as SqliteError;
  return errcode === 2067 || errcode === 1555;
}

/** SQLITE_BUSY or SQLITE_LOCKED: somebody else is writing. */
export function isBusy(thrown: unknown): boolean {
  const code = primaryCode(thrown);
  return code === 5 || code === 6;
}

/** SQLITE_ERROR: what was asked for cannot be understood, whoever asks. */
export function isOfTheObject(thrown: unknown): boolean {
  return primaryCode(thrown) === 1;
}
