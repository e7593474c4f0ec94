// The thread that holds a SQLite file for db:query. Nothing but this file can be reached: no ATTACH, no extension, no setting.
import { constants, DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { isMagicError } from "#contract/errors.ts";
import type { QueryAnswer } from "./driver.ts";
import { driverValue, openMeter, wireValue } from "./meter.ts";
import type { SqliteOptions, SqliteReply, SqliteRequest } from "./sqlite.ts";

const BUSY_MS = 5_000;
const { SQLITE_OK, SQLITE_DENY } = constants;
const DENIED = new Set([
  constants.SQLITE_ATTACH,
  constants.SQLITE_DETACH,
  constants.SQLITE_PRAGMA,
  constants.SQLITE_TRANSACTION,
  constants.SQLITE_SAVEPOINT,
  constants.SQLITE_CREATE_VTABLE,
]);

export function serveSqlite(): void {
  const { file, mode } = workerData as SqliteOptions;
  let database: DatabaseSync | null = null;
  let guarded = true;

  function open(): DatabaseSync {
    database ??= new DatabaseSync(file, { readOnly: mode === "read", timeout: BUSY_MS, defensive: true });
    database.setAuthorizer((action) => (guarded && DENIED.has(action) ? SQLITE_DENY : SQLITE_OK));
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
    if (request.kind === "query") return query(open(), request.sql, request.params);
    if (request.kind === "begin") own(mode === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
    else if (request.kind === "commit") own("COMMIT");
    else if (database?.isTransaction) own("ROLLBACK");
    return null;
  }

  parentPort?.on("message", (request: SqliteRequest) => {
    let reply: SqliteReply;
    try {
      reply = { ok: true, answer: answer(request) };
    } catch (error) {
      const code = isMagicError(error) && error.code === "limit_exceeded" ? "limit_exceeded" : "upstream_error";
      const message = (error as Error).message;
      reply = { ok: false, code, message: code === "upstream_error" ? `the database answered: ${message}` : message };
    }
    parentPort?.postMessage(reply);
  });
}

function query(database: DatabaseSync, sql: string, params: readonly unknown[]): QueryAnswer {
  const statement = database.prepare(sql);
  statement.setReadBigInts(true);
  const values = params.map((value) => bindable(driverValue(value)));
  if (statement.columns().length === 0) {
    const { changes } = statement.run(...values);
    return { rows: [], row_count: Number(changes) };
  }
  const meter = openMeter();
  for (const row of statement.iterate(...values))
    meter.add(Object.fromEntries(Object.entries(row).map(([key, value]) => [key, wireValue(value)])));
  return { rows: meter.rows, row_count: meter.rows.length };
}

function bindable(value: unknown): string | number | bigint | null | Uint8Array {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "number" || value instanceof Uint8Array) return value;
  return JSON.stringify(value);
}
