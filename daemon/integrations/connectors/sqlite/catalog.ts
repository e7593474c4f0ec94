// What a SQLite file says of its tables.
import type { DatabaseSync } from "node:sqlite";
import type { Column, TableSchema } from "../../engine/types.ts";
import { isOfTheObject } from "./errors.ts";
import { columnOf } from "./types.ts";

export interface SqliteTable {
  readonly name: string;
  readonly columns: readonly (Column & { readonly declared: string; readonly generated: boolean })[];
  readonly primaryKey: readonly string[];
}

export const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;

export function describeTable(db: DatabaseSync, name: string): SqliteTable | null {
  const rows = db
    .prepare(
      'SELECT cid, name, type, "notnull" AS required, pk, hidden FROM pragma_table_xinfo(?) WHERE hidden IN (0, 2, 3)',
    )
    .all(name) as {
    cid: number;
    name: string;
    type: string;
    required: number;
    pk: number;
    hidden: number;
  }[];
  if (rows.length === 0) return null;
  return {
    name,
    columns: rows.map((row) => ({
      ...columnOf(row.name, row.type, row.required === 0 && row.pk === 0),
      place: row.cid,
      declared: row.type,
      // 2: virtual, 3: stored.
      generated: row.hidden > 1,
    })),
    primaryKey: rows
      .filter(({ pk }) => pk > 0)
      .sort((a, b) => a.pk - b.pk)
      .map((row) => row.name),
  };
}

export function listTables(db: DatabaseSync): SqliteTable[] {
  const names = db
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_magic\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all() as { name: string }[];
  return names.flatMap(({ name }) => {
    try {
      return describeTable(db, name) ?? [];
    } catch (error) {
      // A view of what has gone, a virtual table whose module is not here: nobody can read it, and the others can be.
      if (!isOfTheObject(error)) throw error;
      return [];
    }
  });
}

export function schemaOf(table: SqliteTable): TableSchema {
  return {
    columns: table.columns.map(({ declared: _, generated: __, ...column }) => column),
    primaryKey: table.primaryKey,
  };
}
