// The types of values in flight and the one form in which values pass between connectors: PostgreSQL's text form as a string,
// bytes as bytes, null. Nothing passes through a JavaScript Number or Date that cannot hold it.

export type ColumnType =
  | { readonly kind: "string" }
  | { readonly kind: "int"; readonly bits: 16 | 32 | 64 }
  /** Without precision: any number of digits. */
  | { readonly kind: "decimal"; readonly precision?: number; readonly scale?: number }
  | { readonly kind: "float"; readonly bits: 32 | 64 }
  | { readonly kind: "bool" }
  | { readonly kind: "date" }
  | { readonly kind: "time"; readonly zone: boolean }
  /** Microseconds; with zone: an instant, written in UTC. */
  | { readonly kind: "timestamp"; readonly zone: boolean }
  | { readonly kind: "uuid" }
  | { readonly kind: "bytes" }
  /** `binary`: jsonb, whose spacing and key order mean nothing. */
  | { readonly kind: "json"; readonly binary: boolean }
  /** The value is an array literal as PostgreSQL writes it: `{a,NULL,"x y"}`. */
  | { readonly kind: "array"; readonly items: ColumnType }
  /** A type of one system alone (inet, interval, tsvector...): its text form. */
  | { readonly kind: "other" };

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
  /** The PostgreSQL type by its full name, e.g. `numeric(38,10)`, `character varying(20)`, `text[]`; carried through files. */
  readonly native?: string;
  /** Its number in the source's table: another one under the same name is another column (dropped and made anew, names exchanged). */
  readonly place?: number;
  /** What its values' text hangs on besides them (an enum's labels, a view's definition), each by a number that stays. */
  readonly spelling?: Readonly<Record<string, string>>;
  /** True where values have no declared type (CSV): they may be parsed into whatever type the destination has. */
  readonly untyped?: boolean;
  /** True where nothing holds values to the declared type (SQLite): what a destination of that type would round or drop is looked at. */
  readonly loose?: boolean;
  /** True where values that came before made a narrower type of it: the destination's column is to take the wider ones too. */
  readonly grown?: boolean;
  /** True where the values were members of JSON objects: a text is then a JSON string, not JSON. */
  readonly fromJson?: boolean;
  /** True where no record had a value, and the type is nobody's word. */
  readonly blank?: boolean;
}

export interface TableSchema {
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
}

/**
 * One value. Booleans are `true`/`false`; integers and decimals are digits; floats the shortest form that reads back, `NaN`, `Infinity`,
 * `-Infinity`; dates `YYYY-MM-DD` (years before 1 with ` BC`), `infinity`; timestamps `YYYY-MM-DD HH:MM:SS[.ffffff]`, with zone `+00` after it; json its text.
 */
export type Value = string | Uint8Array | null;
export type Row = Value[];

/** A short name for people and for messages: `timestamp with zone`, `decimal(38,10)`. */
export function typeName(type: ColumnType): string {
  switch (type.kind) {
    case "int":
      return `int${type.bits}`;
    case "float":
      return `float${type.bits}`;
    case "decimal":
      return type.precision === undefined ? "decimal" : `decimal(${type.precision},${type.scale ?? 0})`;
    case "timestamp":
    case "time":
      return type.zone ? `${type.kind} with zone` : type.kind;
    case "array":
      return `array of ${typeName(type.items)}`;
    default:
      return type.kind;
  }
}

/** JSON Schema (2020-12) of a column, as discovery shows it. Exact numbers are strings on the wire where JSON's would round. */
export function jsonSchemaOf(column: Column): Record<string, unknown> {
  const base = schemaOfType(column.type);
  const type = base["type"];
  if (column.nullable && type !== undefined)
    return { ...base, type: Array.isArray(type) ? [...type, "null"] : [type, "null"] };
  return base;
}

function schemaOfType(type: ColumnType): Record<string, unknown> {
  switch (type.kind) {
    case "int":
      return { type: "integer" };
    case "float":
    case "decimal":
      return { type: "number", description: typeName(type) };
    case "bool":
      return { type: "boolean" };
    case "date":
      return { type: "string", format: "date" };
    case "time":
      return { type: "string", format: "time" };
    case "timestamp":
      return { type: "string", format: "date-time" };
    case "uuid":
      return { type: "string", format: "uuid" };
    case "bytes":
      return { type: "string", contentEncoding: "base16" };
    case "json":
      return {};
    case "array":
      return { type: "array", items: schemaOfType(type.items) };
    default:
      return { type: "string" };
  }
}
