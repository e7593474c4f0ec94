// Many rows into one table, for what is appended in batches (ledger, audit, traces). The rows come as JSON, an array of arrays: one
// string crosses to the storage thread for a tenth of what cloning objects costs. Inserted with a few statements of fixed sizes, whose
// text is made once: building a query from hundreds of rows costs more than SQLite takes to run it.
import { CompiledQuery, PostgresAdapter } from "kysely";
import type { Database, Db } from "./schema.ts";

/** Rows of one statement: SQLite binds at most 32,766 values, Postgres 65,535. */
const SIZES = [64, 8, 1] as const;

const texts = new Map<string, string>();

/** @param rows JSON: arrays of strings, numbers and nulls in the order of `columns`. Names are the program's own, never a caller's. */
export function insertRows(db: Db, table: keyof Database, columns: readonly string[], rows: string): Promise<void> {
  return insertValues(db, table, columns, JSON.parse(rows) as unknown[][]);
}

/** @param conflict what becomes of a row that is there already: the rest of the statement, one text for each table. */
export async function insertValues(
  db: Db,
  table: keyof Database,
  columns: readonly string[],
  values: readonly (readonly unknown[])[],
  conflict = "",
): Promise<void> {
  const dialect = dialectOf(db);
  let from = 0;
  for (const size of SIZES)
    for (; values.length - from >= size; from += size) {
      const given: unknown[] = [];
      for (let at = from; at < from + size; at++) for (const value of values[at] ?? []) given.push(value);
      const parameters = dialect === "postgres" ? given.map(keepable) : given;
      const text = `${insertText(dialect, table, columns, size)} ${conflict}`;
      await db.executeQuery(CompiledQuery.raw(text, parameters));
    }
}

/** For what the two dialects say differently. */
export function dialectOf(db: Db): "sqlite" | "postgres" {
  return db.getExecutor().adapter instanceof PostgresAdapter ? "postgres" : "sqlite";
}

// Postgres has no NUL in texts. What is appended has happened: a row that it refused would hold back all those behind it.
function keepable(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
}

function insertText(dialect: "sqlite" | "postgres", table: string, columns: readonly string[], size: number): string {
  const key = `${dialect} ${table} ${size}`;
  let text = texts.get(key);
  if (text === undefined) {
    let parameter = 0;
    const row = () => `(${columns.map(() => (dialect === "sqlite" ? "?" : `$${++parameter}`)).join(", ")})`;
    const names = columns.map((name) => `"${name}"`).join(", ");
    text = `insert into "${table}" (${names}) values ${Array.from({ length: size }, row).join(", ")}`;
    texts.set(key, text);
  }
  return text;
}
