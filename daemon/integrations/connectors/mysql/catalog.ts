// What MySQL's information_schema says of a table, as the engine's types; and the engine's types as MySQL's.
import { MagicError } from "#contract/errors.ts";
import type { ExistingColumn } from "../../engine/fit.ts";
import type { ObjectName } from "../../engine/name.ts";
import type { Column, ColumnType } from "../../engine/types.ts";
import { ident, type MysqlLink } from "./connect.ts";
import { fitOf } from "./fit.ts";

export interface MysqlColumn extends ExistingColumn {
  /** How the column is selected so that its text is exact. */
  readonly expression: string;
  /** How its text becomes a value, where the type alone does not say. */
  readonly form?: "float32" | "geometry";
  readonly declared: string;
  readonly generated: boolean;
}

export interface MysqlTable {
  readonly database: string;
  readonly name: string;
  readonly columns: readonly MysqlColumn[];
  readonly primaryKey: readonly string[];
  readonly records: number | null;
  /** The storage engine; null: a view. */
  readonly engine: string | null;
}

export async function describeTable(link: MysqlLink, object: ObjectName): Promise<MysqlTable | null> {
  const database = object.schema ?? link.database;
  if (database === null)
    throw new MagicError("invalid_request", `Name the table as database.${object.name}, or a database in the URL.`);
  const tables = await describe(link, "table_schema = ? AND table_name = ?", [database, object.name]);
  // Its comparison may not tell capitals from others, while its files do.
  return tables.find(({ name }) => name === object.name) ?? tables[0] ?? null;
}

// However many tables: three statements. `which` is a condition that all three views of information_schema understand.
async function describe(link: MysqlLink, which: string, parameters: readonly string[]): Promise<MysqlTable[]> {
  const select = (what: string, view: string, order: string, more = "") =>
    link.rows(
      `SELECT table_schema AS d, table_name AS t, ${what} FROM information_schema.${view} WHERE ${which}${more} ORDER BY 1, 2${order}`,
      parameters,
    );
  const tables = await select("table_rows AS n, engine AS e", "tables", " LIMIT 10000");
  const columns = await select(
    "column_name AS name, data_type AS type, column_type AS declared, is_nullable AS nullable, numeric_precision AS p, numeric_scale AS s, extra, ordinal_position AS place",
    "columns",
    ", ordinal_position",
  );
  const keys = await select(
    "column_name AS name",
    "key_column_usage",
    ", ordinal_position",
    " AND constraint_name = 'PRIMARY'",
  );
  const place = (row: Record<string, string | null>) => JSON.stringify([row["d"], row["t"]]);
  const columnsOf = Map.groupBy(columns, place);
  const keyOf = Map.groupBy(keys, place);
  return tables.map((table) => ({
    database: table["d"] ?? "",
    name: table["t"] ?? "",
    columns: (columnsOf.get(place(table)) ?? []).map(columnOf),
    primaryKey: (keyOf.get(place(table)) ?? []).map((row) => row["name"] ?? ""),
    records: table["n"] === null || table["n"] === undefined ? null : Number(table["n"]),
    engine: table["e"] ?? null,
  }));
}

export async function listTables(link: MysqlLink): Promise<MysqlTable[]> {
  const databases =
    link.database === null
      ? "table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
      : "table_schema = DATABASE()";
  const tables = await describe(link, `${databases} AND table_name NOT LIKE '\\_magic\\_%'`, []);
  // A view of what has gone has none.
  return tables.filter(({ columns }) => columns.length > 0);
}

function columnOf(row: Record<string, string | null>): MysqlColumn {
  const name = row["name"] ?? "";
  const type = row["declared"] ?? "";
  const declared = type.toLowerCase();
  const found = typeOf((row["type"] ?? "").toLowerCase(), declared, Number(row["p"] ?? 0), Number(row["s"] ?? 0));
  const nullable = row["nullable"] === "YES";
  // A null there is a number, or on older servers the time of day.
  const fillsIn = /auto_increment/i.test(row["extra"] ?? "") || (declared.startsWith("timestamp") && !nullable);
  const column: MysqlColumn = {
    name,
    nullable,
    place: Number(row["place"]),
    declared,
    generated: /\bgenerated\b/i.test(row["extra"] ?? "") && !/default_generated/i.test(row["extra"] ?? ""),
    fit: (source) => (fillsIn ? notNull(fitOf(column, type, source)) : fitOf(column, type, source)),
    type: found.type,
    ...(found.form ? { form: found.form } : {}),
    expression: found.expression?.(ident(name)) ?? ident(name),
  };
  return column;
}

type Fit = ReturnType<typeof fitOf>;

const notNull =
  (fit: Fit): Fit =>
  (value) =>
    value === null ? "null, for which the table would fill in a value of its own" : (fit?.(value) ?? null);

function typeOf(
  type: string,
  declared: string,
  precision: number,
  scale: number,
): { type: ColumnType; form?: "float32" | "geometry"; expression?: (name: string) => string } {
  const unsigned = declared.includes("unsigned");
  switch (type) {
    case "tinyint":
    case "year":
      return { type: { kind: "int", bits: 16 } };
    case "smallint":
      return { type: { kind: "int", bits: unsigned ? 32 : 16 } };
    case "mediumint":
      return { type: { kind: "int", bits: 32 } };
    case "int":
      return { type: { kind: "int", bits: unsigned ? 64 : 32 } };
    case "bigint":
      return { type: unsigned ? { kind: "decimal", precision: 20, scale: 0 } : { kind: "int", bits: 64 } };
    case "decimal":
      return { type: { kind: "decimal", precision, scale } };
    // FLOAT's own text has six digits: as a double it has them all.
    case "float":
      return { type: { kind: "float", bits: 32 }, form: "float32", expression: (name) => `(${name} + 0e0)` };
    case "double":
      return { type: { kind: "float", bits: 64 } };
    case "bit":
      return declared === "bit(1)"
        ? { type: { kind: "bool" }, expression: (name) => `(${name} + 0)` }
        : { type: { kind: "decimal", precision: 20, scale: 0 }, expression: (name) => `CAST(${name} AS UNSIGNED)` };
    case "date":
      return { type: { kind: "date" } };
    case "time":
      return { type: { kind: "time", zone: false } };
    case "datetime":
      return { type: { kind: "timestamp", zone: false } };
    case "timestamp":
      return { type: { kind: "timestamp", zone: true } };
    case "json":
      return { type: { kind: "json", binary: true } };
    case "uuid":
      return { type: { kind: "uuid" } };
    case "binary":
    case "varbinary":
    case "tinyblob":
    case "blob":
    case "mediumblob":
    case "longblob":
    case "vector":
      return { type: { kind: "bytes" } };
    case "geometry":
    case "point":
    case "linestring":
    case "polygon":
    case "multipoint":
    case "multilinestring":
    case "multipolygon":
    case "geomcollection":
    case "geometrycollection":
      return { type: { kind: "bytes" }, form: "geometry" };
    default:
      return { type: { kind: "string" } };
  }
}

/** The check for values of a column that is made as the source declares it; null: it is made one that changes none. */
export function fitOfNew(column: Column): Fit {
  const declared = declare(column, false, "utf8mb4_bin");
  return /^(DECIMAL|DATE|TIME)/.test(declared) ? fitOf(column, declared, column) : null;
}

/** How a column of the source is made; what MySQL would round or fold is kept as text. `keyCollation`: one that sees blanks at the end. */
export function declare(column: Column, key: boolean, keyCollation: string): string {
  const { type } = column;
  switch (type.kind) {
    case "int":
      return type.bits === 16 ? "SMALLINT" : type.bits === 32 ? "INT" : "BIGINT";
    case "decimal":
      if (
        type.precision !== undefined &&
        type.precision <= 65 &&
        (type.scale ?? 0) <= type.precision &&
        (type.scale ?? 0) >= 0 &&
        (type.scale ?? 0) <= 30
      )
        return `DECIMAL(${type.precision}, ${type.scale ?? 0})`;
      break;
    case "float":
      return "DOUBLE";
    case "bool":
      return "TINYINT(1)";
    case "date":
      return "DATE";
    case "time":
      if (!type.zone) return "TIME(6)";
      break;
    case "timestamp":
      return "DATETIME(6)";
    case "uuid":
      return "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin";
    case "bytes":
      return key ? "VARBINARY(255)" : "LONGBLOB";
  }
  return `${key ? "VARCHAR(255)" : "LONGTEXT"} CHARACTER SET utf8mb4 COLLATE ${key ? keyCollation : "utf8mb4_bin"}`;
}
