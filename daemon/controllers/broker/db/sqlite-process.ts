// The process that holds a SQLite file for db:query. Nothing but this file can be reached: no ATTACH, no extension, no setting.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { constants, DatabaseSync, type SQLInputValue } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { openKernel, resource } from "../../cell/lockdown/kernel.ts";
import { limitMemory } from "../../cell/lockdown/memory.ts";
import { thisArchitecture } from "../../cell/lockdown/syscalls.ts";
import { caps, ENDED, type QueryAnswer } from "./driver.ts";
import { openMeter, wireValue } from "./meter.ts";
import { LIFELINE, type SqliteReply, type SqliteRequest } from "./sqlite.ts";

const BUSY_MS = 5_000;
/** Of one text, one blob, one row: `zeroblob(1e9)` takes nine letters. */
const MAX_LENGTH = 2 * caps.bytes;
/** Of the process, answers included. */
const MAX_MEMORY = 512 * 1024 * 1024;
/** Of one file: where SQLite puts what a sort does not keep in memory. */
const MAX_SPILLED = 1024 * 1024 * 1024;
const { SQLITE_OK, SQLITE_DENY } = constants;
const DENIED = new Set([
  constants.SQLITE_ATTACH,
  constants.SQLITE_DETACH,
  constants.SQLITE_PRAGMA,
  constants.SQLITE_TRANSACTION,
  constants.SQLITE_SAVEPOINT,
  constants.SQLITE_CREATE_VTABLE,
]);

/** What the tables of FTS5 and R-Tree ask for themselves. */
const ASKED = new Set(["data_version", "page_size"]);

/** @param file the database; @param mode `read` or `write`. */
export async function serveSqlite(file: string, mode: string): Promise<void> {
  await endWithTheDaemon();
  // After the thread has taken its half a gigabyte, before the first statement: nothing else runs beside one.
  limitResources(mode);
  let database: DatabaseSync | null = null;
  let guarded = true;

  function open(): DatabaseSync {
    if (database) return database;
    const limits = { length: MAX_LENGTH };
    database = new DatabaseSync(file, { readOnly: mode === "read", timeout: BUSY_MS, defensive: true, limits });
    database.setAuthorizer((action, name, value) => {
      if (!guarded || !DENIED.has(action)) return SQLITE_OK;
      return action === constants.SQLITE_PRAGMA && value === null && ASKED.has(name ?? "") ? SQLITE_OK : SQLITE_DENY;
    });
    return database;
  }

  /** The broker's own statements: the handler's may neither begin nor end a transaction. */
  function own(sql: string): void {
    guarded = false;
    try {
      open().exec(sql);
    } finally {
      guarded = true;
    }
  }

  function answer(request: SqliteRequest): QueryAnswer | null {
    if (request.kind === "query") {
      // A full disk undoes the transaction, so does `insert or rollback`: what followed would be committed by itself.
      if (!open().isTransaction) throw new MagicError("invalid_request", ENDED);
      return query(open(), request.sql, request.params);
    }
    if (request.kind === "begin") own(mode === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
    else if (request.kind === "commit") own("COMMIT");
    else reset();
    return null;
  }

  /** The next caller may be another controller: a temporary view or trigger would stand between it and the tables of that name. */
  function reset(): void {
    if (database?.isTransaction) own("ROLLBACK");
    if (!database?.prepare("SELECT 1 FROM sqlite_temp_schema").get()) return;
    database.close();
    database = null;
  }

  process.on("message", (request: SqliteRequest) => {
    let reply: SqliteReply;
    try {
      reply = { ok: true, answer: answer(request) };
    } catch (error) {
      const { message, errcode } = error as Error & { errcode?: number };
      reply = isMagicError(error)
        ? { ok: false, code: error.code === "limit_exceeded" ? "limit_exceeded" : "invalid_request", message }
        : { ok: false, code: "upstream_error", message, errcode };
    }
    process.send?.(reply);
  });
}

// A statement blocks this process, for ever if it has no end: a thread of its own sees the lifeline break, however the daemon went.
async function endWithTheDaemon(): Promise<void> {
  const wait = `require("node:fs").readSync(${LIFELINE}, Buffer.alloc(1)); process.kill(process.pid, "SIGKILL");`;
  // What ends a service reaches all of its processes: the daemon decides.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  const thread = new Worker(wait, { eval: true });
  await once(thread, "online");
  thread.unref();
}

/**
 * A row may have two thousand columns of the greatest length, a sort may spill for as long as its statement runs. SQLite's own limits know
 * neither: the kernel's make it fail, and where there are none, Linux ends this process before the daemon.
 */
function limitResources(mode: string): void {
  const attempt = (step: () => void): void => {
    try {
      step();
    } catch {
      // Elsewhere there is no such thing.
    }
  };
  attempt(() => writeFileSync("/proc/self/oom_score_adj", "1000"));
  const architecture = thisArchitecture();
  if (architecture === null) return;
  attempt(() => {
    const kernel = openKernel(architecture);
    limitMemory(kernel, MAX_MEMORY);
    // Whoever writes may have a larger file already.
    if (mode === "read") kernel.limit(resource.fileSize, MAX_SPILLED);
  });
}

function query(database: DatabaseSync, sql: string, values: readonly SQLInputValue[]): QueryAnswer {
  const statement = database.prepare(sql);
  if (!isBlank(sql.slice(statement.sourceSQL.length)))
    throw new MagicError("invalid_request", "one statement at a time: db.query would leave out what follows the first");
  statement.setReadBigInts(true);
  if (wantsMore(database, sql, values))
    throw new MagicError("invalid_request", `the statement has more than the ${values.length} parameters that came`);
  if (statement.columns().length === 0) {
    const before = changedRows(database);
    const { changes } = statement.run(...values);
    // What changes no rows, a CREATE or an ANALYZE, leaves the count of the statement before it.
    return { rows: [], row_count: changedRows(database) === before ? 0 : Number(changes) };
  }
  const meter = openMeter();
  for (const row of statement.iterate(...values))
    meter.add(Object.fromEntries(Object.entries(row).map(([key, value]) => [key, wireValue(value)])));
  return { rows: meter.rows, row_count: meter.rows.length };
}

/** Since the file was opened. */
function changedRows(database: DatabaseSync): unknown {
  return database.prepare("SELECT total_changes() AS rows").get()?.["rows"];
}

/** SQLite takes a parameter without a value for null, and says how many there are only by refusing one too many. */
function wantsMore(database: DatabaseSync, sql: string, values: readonly SQLInputValue[]): boolean {
  if (!sql.includes("?")) return false;
  try {
    database.prepare(`EXPLAIN ${sql}`).get(...values, null);
    return true;
  } catch {
    return false;
  }
}

/** Nothing but white space, comments (one without an end too) and semicolons. Each taken away once: to fit all of them at once, comments may be parted in any way. */
function isBlank(sql: string): boolean {
  return sql.replace(/[\s;]+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, "") === "";
}
