// The database file before anything writes to it: its folder and mode, and whether it is a sound database.
import { closeSync, existsSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { databaseFile, stateFolder } from "#shared/paths.ts";
import { databaseProblem } from "#shared/sqlite-soundness.ts";
import { translate } from "../failure.ts";

/** Makes the state folder (0700, ignored by git) where it is missing; answers the database's path. */
export function prepareFolder(root: string): string {
  const folder = stateFolder(root);
  try {
    makeFolder(folder, 0o700);
    const ignore = join(folder, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { mode: 0o600 });
    return databaseFile(folder);
  } catch (error) {
    throw translate(error) ?? error;
  }
}

/**
 * Reads the database without changing anything, then makes one without tables (0600) where it is missing.
 *
 * @throws MagicError `database_corrupt`.
 */
export function checkFile(file: string): void {
  const problem = databaseProblem(file);
  if (problem !== undefined) throw new MagicError("database_corrupt", problem);
  if (!existsSync(file)) makeDatabase(file);
}

// Whole or not at all: an empty file in its place was cut off, and is not to be taken for one that was about to be made.
function makeDatabase(file: string): void {
  // No longer than the lock's: how long a path SQLite takes has been asked for that.
  const next = `${file}~`;
  rmSync(next, { force: true });
  closeSync(openSync(next, "wx", 0o600));
  const made = new DatabaseSync(next);
  try {
    made.exec("PRAGMA journal_mode=WAL");
  } finally {
    made.close();
  }
  renameSync(next, file);
}
