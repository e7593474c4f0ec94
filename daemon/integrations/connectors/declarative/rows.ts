// JSON records -> rows. A value that its column cannot hold exactly is a reject, never something near it. Fields that the schema does not name
// are kept together in one JSON column.
import { MagicError } from "#contract/errors.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import { timestampOf } from "../../engine/temporal.ts";
import type { Column, ColumnType, Row, TableSchema, Value } from "../../engine/types.ts";
import { parseUnambiguous } from "./jinja/date-text.ts";
import { isRecord, list } from "./manifest/component.ts";
import { fieldOf } from "./read/fields.ts";

export const EXTRA_COLUMN = "_magic_extra";

export function tableOf(
  schema: Readonly<Record<string, unknown>> | undefined,
  stream: { readonly primaryKey: readonly (readonly string[])[]; readonly cursorField: string | undefined },
): TableSchema {
  const properties = isRecord(schema?.["properties"]) ? schema["properties"] : {};
  const columns: Column[] = Object.entries(properties).map(([name, property]) => ({
    name,
    type: typeOfProperty(property),
    nullable: true,
  }));
  const primaryKey = stream.primaryKey.map((path) => path.join("."));
  for (const name of [...primaryKey, ...(stream.cursorField ? [stream.cursorField] : [])])
    if (!columns.some((column) => column.name === name))
      columns.push({ name, type: { kind: "string" }, nullable: true });
  columns.push({ name: EXTRA_COLUMN, type: { kind: "json", binary: true }, nullable: true });
  return {
    columns: columns.map((column) => (primaryKey.includes(column.name) ? { ...column, nullable: false } : column)),
    primaryKey,
  };
}

function typeOfProperty(property: unknown): ColumnType {
  if (!isRecord(property)) return { kind: "json", binary: true };
  const types = list(property["type"]).filter((type) => type !== "null");
  if (types.length !== 1) return { kind: "json", binary: true };
  if (types[0] === "integer") return { kind: "int", bits: 64 };
  if (types[0] === "number") return { kind: "decimal" };
  if (types[0] === "boolean") return { kind: "bool" };
  if (types[0] !== "string") return { kind: "json", binary: true };
  if (property["format"] === "date") return { kind: "date" };
  return property["format"] === "date-time" ? { kind: "timestamp", zone: true } : { kind: "string" };
}

export interface Rows {
  readonly rows: Row[];
  /** About: the values' text. */
  readonly bytes: number;
  readonly rejects: { readonly key: string; readonly column: string | null; readonly reason: string }[];
}

export function rowsOf(
  records: readonly Readonly<Record<string, unknown>>[],
  schema: TableSchema,
  table: TableSchema,
): Rows {
  const known = new Set(table.columns.map((column) => column.name));
  const rows: Row[] = [];
  const rejects: Rows["rejects"] = [];
  let bytes = 0;
  for (const record of records) {
    let column: Column | undefined;
    try {
      const row: Row = [];
      for (column of schema.columns) {
        const cell =
          column.name === EXTRA_COLUMN ? extra(record, known) : cellOf(fieldOf(record, column.name), column.type);
        row.push(cell);
        bytes += typeof cell === "string" ? cell.length : 4;
      }
      rows.push(row);
    } catch (error) {
      const key = table.primaryKey.map((name) => String(fieldOf(record, name) ?? "")).join(",");
      rejects.push({ key, column: column?.name ?? null, reason: (error as Error).message });
    }
  }
  return { rows, bytes, rejects };
}

function extra(record: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): Value {
  for (const first in record)
    if (!known.has(first))
      return extraCell(Object.fromEntries(Object.entries(record).filter(([name]) => !known.has(name))));
  return null;
}

/** The members that no column is for. */
export const extraCell = (members: unknown): Value => json(members);

const unfit = (value: unknown, kind: string): never => {
  throw new MagicError("validation_failed", `${JSON.stringify(value).slice(0, 100)} is no ${kind}`);
};

/** A member's value in its column's form. Throws for one that the column cannot hold. */
export function cellOf(value: unknown, type: ColumnType): Value {
  if (value === null || value === undefined) return null;
  if (type.kind === "json") return json(value);
  if (type.kind === "bool")
    return typeof value === "boolean"
      ? String(value)
      : value === "true" || value === "false"
        ? value
        : unfit(value, "boolean");
  if (type.kind === "int") {
    if (Number.isSafeInteger(value)) return String(value);
    return /^[+-]?\d+$/.test(digits(value)) ? digits(value) : unfit(value, "integer");
  }
  if (type.kind === "decimal")
    return /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(digits(value)) ? digits(value) : unfit(value, "number");
  // APIs send "" for a date that there is not.
  if (type.kind === "date" || type.kind === "timestamp") return value === "" ? null : moment(value, type.kind);
  return text(typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value) : String(value));
}

const digits = (value: unknown): string =>
  typeof value === "number" || typeof value === "string" || value instanceof ExactNumber ? String(value).trim() : "";

// PostgreSQL's text cannot hold NUL: the record is set aside rather than changed.
function text(value: string): string {
  if (value.includes("\0")) throw new MagicError("validation_failed", "the text holds a NUL character");
  if (!value.isWellFormed()) throw new MagicError("validation_failed", "the text holds half of a surrogate pair");
  return value;
}

function json(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => (typeof each === "string" ? text(each) : each));
}

// Days to 28 only: the others need a calendar.
const UTC =
  /^((?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8]))T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?Z$/;

function moment(value: unknown, kind: "date" | "timestamp"): string {
  const written = String(value);
  if (kind === "date")
    return /^\d{4}-\d\d-\d\d$/.test(written)
      ? written
      : /^\d{4}-\d\d-\d\d[T ]00:00:00(\.0+)?(Z|\+00:?00)?$/.test(written)
        ? written.slice(0, 10)
        : unfit(value, "date");
  if (typeof value !== "string") return unfit(value, "time");
  // The commonest form is nearly the column's own.
  const [, day, time, fraction = ""] = UTC.exec(written) ?? [];
  if (day !== undefined && time !== undefined) {
    const tail = fraction.replace(/0+$/, "");
    return `${day} ${time}${tail ? `.${tail}` : ""}+00`;
  }
  const finer = /[.,]\d{6}\d*[1-9]/.test(written);
  try {
    if (finer) return unfit(value, "time in microseconds");
    return timestampOf(parseUnambiguous(written).us, true);
  } catch {
    return unfit(value, "time");
  }
}
