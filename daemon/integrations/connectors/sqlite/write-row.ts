// One row at a time into a SQLite table, by prepared statements: insert, upsert, or update; several old rows of one key are deleted first.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { DELETED_AT, type WritePlan } from "../../engine/destination.ts";
import { leftNull } from "../../engine/evolution.ts";
import type { Row } from "../../engine/types.ts";
import { describeTable, quote, type SqliteTable } from "./catalog.ts";
import { isRowError } from "./errors.ts";
import { affinityOf, type Stored, writeValue } from "./types.ts";

/** Writes a row, or throws what SQLite says. doubled: another row of this run had its key, and is gone. */
export type RowWriter = (row: Row) => "written" | "doubled";

// In the run's transaction, over a key that the table itself does not keep unique: without it every row would be looked for in all.
const KEY_INDEX = "_magic_key";

const LEFT_OUT =
  "the table left it out: by a trigger of its own, or because its collation takes the key for another row's";

export function rowWriter(db: DatabaseSync, table: string, plan: WritePlan, described: SqliteTable | null): RowWriter {
  const names = plan.columns.map(({ name }) => name);
  const key = plan.primaryKey;
  const soft = plan.deletes === "soft";
  const upsert = key.length > 0 && (plan.kind === "upsert" || (plan.kind === "replace" && soft));
  // A full refresh begins with an empty table: whatever row has the key came in this run.
  const uncertain = key.length > 0 && plan.kind === "replace" && !plan.keyCertain;
  const unique = key.length > 0 && hasUniqueIndex(db, table, key);
  if (uncertain && !soft && !unique)
    db.exec(`CREATE UNIQUE INDEX ${KEY_INDEX} ON ${table} (${key.map(quote).join(", ")})`);
  else if (upsert && !unique)
    db.exec(`CREATE INDEX ${KEY_INDEX} ON ${table} (${key.map((name) => `${quote(name)} COLLATE BINARY`).join(", ")})`);
  const brought = names.filter((name) => !key.includes(name));
  // Of rows that a full refresh marks instead of deleting.
  const nulls = plan.kind === "replace" ? [...leftNull(plan, described?.columns)] : [];
  // Whatever this run does about deletions: a record that is there has not gone.
  if (soft || described?.columns.some((column) => column.name === DELETED_AT)) nulls.push(DELETED_AT);
  const sets = (value: (name: string) => string) =>
    [
      ...brought.map((name) => `${quote(name)} = ${value(quote(name))}`),
      ...nulls.map((name) => `${quote(name)} = NULL`),
    ].join(", ");
  const changes = brought.length + nulls.length > 0;
  // To a collation "A" may be the key "a": of such a row nothing is changed.
  const same = key.map((name) => `${table}.${quote(name)} = excluded.${quote(name)} COLLATE BINARY`).join(" AND ");
  const conflict =
    upsert && unique
      ? ` ON CONFLICT (${key.map(quote).join(", ")}) DO ${changes ? `UPDATE SET ${sets((name) => `excluded.${name}`)} WHERE ${same}` : "NOTHING"}`
      : "";
  // Whatever the table's own constraints would do about it (ON CONFLICT IGNORE, REPLACE, ROLLBACK): a row that they refuse is told. Only
  // where it has such, for what stands here stands in place of what its triggers say as well (INSERT OR IGNORE).
  const abort = hasConflictClause(db, table) ? " OR ABORT" : "";
  const insert = writing(
    db,
    `INSERT${abort} INTO ${table} (${names.map(quote).join(", ")}) VALUES (${names.map(() => "?").join(", ")})${conflict}`,
  );
  const hasKey = `WHERE ${key.map((name) => `${quote(name)} = ? COLLATE BINARY`).join(" AND ")}`;
  const ofKey = `FROM ${table} ${hasKey}`;
  const remove = (upsert && !unique) || (uncertain && !soft) ? writing(db, `DELETE ${ofKey}`) : null;
  const found = upsert && !unique ? db.prepare(`SELECT 1 ${ofKey} LIMIT 2`) : null;
  const update = found && changes ? writing(db, `UPDATE${abort} ${table} SET ${sets(() => "?")} ${hasKey}`) : null;
  const living = uncertain && soft ? db.prepare(`SELECT 1 ${ofKey} AND ${quote(DELETED_AT)} IS NULL`) : null;
  const keys = key.map((name) => names.indexOf(name));
  const others = brought.map((name) => names.indexOf(name));
  const declared = names.map((name) => described?.columns.find((column) => column.name === name)?.declared ?? "");
  const affinities = declared.map(affinityOf);
  const alias = rowidAlias(described);
  const rowid = alias === null ? -1 : names.indexOf(alias);

  // What a view's triggers do is counted nowhere.
  const counts = !isView(db, table);
  const write = (statement: StatementSync, values: readonly Stored[]): void => {
    if (statement.run(...values).changes === 0n && counts) throw new RangeError(LEFT_OUT);
  };

  // Without a unique index: several rows of one key become one.
  const put = (values: readonly Stored[]): void => {
    const ofRow = keys.map((at) => values[at] ?? null);
    const there = found?.all(...ofRow).length ?? 0;
    if (there === 0) write(insert, values);
    else if (there > 1) replace(values);
    else if (update) write(update, [...others.map((at) => values[at] ?? null), ...ofRow]);
  };

  // A new row that is refused leaves the old one.
  const replace = (values: readonly Stored[]): number => {
    db.exec("SAVEPOINT magic_row");
    try {
      const gone = remove?.run(...keys.map((at) => values[at] ?? null)).changes ?? 0n;
      write(insert, values);
      return Number(gone);
    } catch (error) {
      db.exec("ROLLBACK TO magic_row");
      throw error;
    } finally {
      db.exec("RELEASE magic_row");
    }
  };

  return (row) => {
    // SQLite would make up a number.
    if (rowid >= 0 && (row[rowid] ?? null) === null) throw new RangeError("the primary key is null");
    const values = plan.columns.map((column, at) =>
      writeValue(row[at] ?? null, column, affinities[at] ?? "blob", declared[at]),
    );
    if (upsert) {
      const doubled = living?.get(...keys.map((at) => values[at] ?? null)) !== undefined;
      if (found) put(values);
      else if (changes) write(insert, values);
      else insert.run(...values);
      return doubled ? "doubled" : "written";
    }
    try {
      write(insert, values);
      return "written";
    } catch (error) {
      if (!remove || !isRowError(error)) throw error;
      return replace(values) > 0 ? "doubled" : "written";
    }
  };
}

/**
 * A statement whose answer is thrown away or counted. `run` tells the last row's number with it, whatever the statement does, and
 * throws behind the write where that is beyond 2^53 and numbers were asked for.
 */
export function writing(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql);
  statement.setReadBigInts(true);
  return statement;
}

/** Undoes what `rowWriter` needed of the table itself. */
export function endRows(db: DatabaseSync): void {
  db.exec(`DROP INDEX IF EXISTS ${KEY_INDEX}`);
}

// A column declared exactly INTEGER that is the whole primary key is the row's own number: lang_createtable.html, 5.
function rowidAlias(table: SqliteTable | null): string | null {
  const [key = null, ...more] = table?.primaryKey ?? [];
  const column = table?.columns.find(({ name }) => name === key);
  return more.length === 0 && column?.declared.toUpperCase() === "INTEGER" ? key : null;
}

const unquoted = (table: string) => table.slice(1, -1).replaceAll('""', '"');

function isView(db: DatabaseSync, table: string): boolean {
  const views = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ? COLLATE NOCASE");
  return views.get(unquoted(table)) !== undefined;
}

function hasConflictClause(db: DatabaseSync, table: string): boolean {
  const made = db
    .prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE")
    .get(unquoted(table));
  return /\bON\s+CONFLICT\b/i.test(String(made?.["sql"]));
}

function hasUniqueIndex(db: DatabaseSync, table: string, key: readonly string[]): boolean {
  const name = unquoted(table);
  const declared = describeTable(db, name)?.primaryKey ?? [];
  const same = (columns: readonly string[]) =>
    columns.length === key.length && key.every((one) => columns.includes(one));
  if (same(declared)) return true;
  const indexes = db.prepare('SELECT name FROM pragma_index_list(?) WHERE "unique" = 1 AND partial = 0').all(name) as {
    name: string;
  }[];
  return indexes.some((index) =>
    same(
      (db.prepare("SELECT name FROM pragma_index_info(?)").all(index.name) as { name: string }[]).map(
        (column) => column.name,
      ),
    ),
  );
}
