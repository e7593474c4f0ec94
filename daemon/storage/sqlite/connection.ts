// The one SQLite connection of the storage thread, and Kysely over it: prepared statements are kept, integers are exact.
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { Kysely, type SqliteDatabase, SqliteDialect } from "kysely";
import { exactInteger } from "../integers.ts";
import type { Db } from "../schema.ts";

const CACHED_STATEMENTS = 500;

export interface Connection {
  readonly raw: DatabaseSync;
  readonly db: Db;
}

export function connect(file: string, maxPages: number | undefined): Connection {
  const raw = new DatabaseSync(file, { timeout: 5000 });
  raw.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY");
  raw.exec("PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=67108864");
  if (maxPages !== undefined) raw.exec(`PRAGMA max_page_count=${Math.trunc(maxPages)}`);
  return { raw, db: new Kysely({ dialect: new SqliteDialect({ database: database(raw) }) }) };
}

interface Prepared {
  readonly statement: StatementSync;
  readonly reader: boolean;
}

function database(raw: DatabaseSync): SqliteDatabase {
  const cache = new Map<string, Prepared>();
  const prepare = (sql: string): Prepared => {
    let prepared = cache.get(sql);
    if (prepared === undefined) {
      const statement = raw.prepare(sql);
      statement.setReadBigInts(true);
      prepared = { statement, reader: statement.columns().length > 0 };
      if (cache.size >= CACHED_STATEMENTS) for (const oldest of cache.keys()) if (cache.delete(oldest)) break;
      // A statement that changes the schema would outlive what it names.
      if (!/^\s*(?:create|alter|drop|pragma)\b/i.test(sql)) cache.set(sql, prepared);
    }
    return prepared;
  };
  return {
    close: () => raw.close(),
    prepare(sql) {
      const { statement, reader } = prepare(sql);
      return {
        reader,
        all: (parameters) => statement.all(...(parameters as SQLInputValue[])).map(exactRow),
        run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
        *iterate(parameters) {
          for (const row of statement.iterate(...(parameters as SQLInputValue[]))) yield exactRow(row);
        },
      };
    },
  };
}

function exactRow(row: Record<string, unknown>): Record<string, unknown> {
  for (const key in row) {
    const value = row[key];
    if (typeof value === "bigint") row[key] = exactInteger(value);
  }
  return row;
}
