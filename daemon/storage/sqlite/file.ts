// The database file before anything writes to it: its folder and mode, and whether it is a sound database.

import { closeSync, existsSync, openSync, readSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { stateFolder } from "#shared/paths.ts";
import { translate } from "../failure.ts";

const header = Buffer.from("SQLite format 3\0", "latin1");
// Reading every page of a large database would hold up the start; its header and schema are read whatever its size.
const quickCheckLimit = 128 * 1024 * 1024;

/** Makes the state folder (0700, ignored by git) and the empty file (0600) where they are missing; answers the file's path. */
export function prepareFile(root: string): string {
  const folder = stateFolder(root);
  try {
    makeFolder(folder, 0o700);
    const ignore = join(folder, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { mode: 0o600 });
    const file = join(folder, "magic.db");
    closeSync(openSync(file, "a", 0o600));
    return file;
  } catch (error) {
    throw translate(error) ?? error;
  }
}

/**
 * Reads the database through a read-only connection, which changes nothing, not even by closing.
 *
 * @throws MagicError `database_corrupt`.
 */
export function checkFile(file: string): void {
  const { size } = statSync(file);
  if (size === 0) {
    if (existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0)
      throw new MagicError("database_corrupt", `${file} is empty but its write-ahead log is not`);
    return;
  }
  const start = Buffer.alloc(header.length);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, start, 0, start.length, 0);
  } finally {
    closeSync(descriptor);
  }
  if (!start.equals(header)) throw new MagicError("database_corrupt", `${file} is not an SQLite database`);
  const db = new DatabaseSync(file, { readOnly: true, timeout: 2000 });
  try {
    const pragma = size <= quickCheckLimit ? "PRAGMA quick_check(1)" : "PRAGMA schema_version";
    const [row] = db.prepare(pragma).all();
    const verdict = row?.["quick_check"];
    if (verdict !== undefined && verdict !== "ok") throw new MagicError("database_corrupt", `${file}: ${verdict}`);
    db.prepare("SELECT count(*) FROM sqlite_schema").all();
  } catch (error) {
    const known = translate(error);
    throw known?.code === "database_corrupt"
      ? new MagicError("database_corrupt", `${file}: ${known.message}`)
      : (known ?? error);
  } finally {
    db.close();
  }
}
