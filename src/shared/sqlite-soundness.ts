// Whether an SQLite file is a sound database, and what it holds, found out without changing anything: the daemon asks before it opens its
// state, doctor when no daemon does.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";

const header = Buffer.from("SQLite format 3\0", "latin1");
// Reading every page of a large database would hold up the start; its header and schema are read whatever its size.
const QUICK_CHECK_LIMIT = 128 * 1024 * 1024;
// https://www.sqlite.org/rescode.html
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

/** What is wrong with the database at `file`; undefined where it is sound or absent. Throws where it cannot be read. */
export function databaseProblem(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  const logged = hasLog(file);
  if (found?.isFile() === false) return `${file} is no file`;
  if (!found) return logged ? `${file} is missing, and its write-ahead log is not` : undefined;
  if (found.size === 0) return `${file} is empty: what it held is gone, and a new one is made where it is removed`;
  if (!startOf(file).equals(header)) return `${file} is not an SQLite database`;
  return pagesProblem(file, found.size, logged);
}

function startOf(file: string): Buffer {
  const start = Buffer.alloc(header.length);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, start, 0, start.length, 0);
  } finally {
    closeSync(descriptor);
  }
  return start;
}

function pagesProblem(file: string, size: number, logged: boolean): string | undefined {
  const db = openUnchanged(file, logged);
  try {
    const pragma = size <= QUICK_CHECK_LIMIT ? "PRAGMA quick_check(1)" : "PRAGMA schema_version";
    const verdict = db.prepare(pragma).get()?.["quick_check"];
    db.prepare("SELECT count(*) FROM sqlite_schema").all();
    return verdict === undefined || verdict === "ok" ? undefined : `${file}: ${verdict}`;
  } catch (error) {
    const { errcode = 0, message } = error as Error & { errcode?: number };
    if ((errcode & 0xff) !== CORRUPT && (errcode & 0xff) !== NOT_A_DATABASE) throw error;
    return `${file}: ${message}`;
  } finally {
    db.close();
  }
}

/** The rows of a query in a sound database; none where one of the tables that it needs is not there. */
export function rowsIn(file: string, tables: readonly string[], query: string, ...values: string[]) {
  if (!(statSync(file, { throwIfNoEntry: false })?.size ?? 0)) return [];
  const db = openUnchanged(file, hasLog(file));
  try {
    const known = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
    return tables.every((table) => known.get(table)) ? db.prepare(query).all(...values) : [];
  } finally {
    db.close();
  }
}

function hasLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function openUnchanged(file: string, logged: boolean): DatabaseSync {
  const url = pathToFileURL(file);
  // Even a read-only connection makes a log and an index beside a database in WAL mode. Without a log there is nothing to share.
  if (!logged) url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly: true, timeout: 2_000 });
}
