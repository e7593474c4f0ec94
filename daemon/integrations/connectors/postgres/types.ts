// PostgreSQL's types and the engine's: `format_type` names to ColumnType and back, and which of them may travel as binary.
import { holds } from "../../engine/evolution.ts";
import type { Column, ColumnType } from "../../engine/types.ts";

/** The engine's type for a built-in PostgreSQL type by its `format_type` name. */
export function typeOfNative(native: string): ColumnType {
  if (native.endsWith("[]")) return { kind: "array", items: typeOfNative(native.slice(0, -2)) };
  const [, base = native, parameters = "", rest = ""] = /^([^(]*)(?:\(([^)]*)\))?(.*)$/.exec(native) ?? [];
  switch ((base.trim() + rest).trim()) {
    case "smallint":
      return { kind: "int", bits: 16 };
    case "integer":
      return { kind: "int", bits: 32 };
    case "bigint":
      return { kind: "int", bits: 64 };
    case "numeric": {
      const [precision, scale = 0] = parameters.split(",").map(Number);
      return parameters === "" || precision === undefined ? { kind: "decimal" } : { kind: "decimal", precision, scale };
    }
    case "real":
      return { kind: "float", bits: 32 };
    case "double precision":
      return { kind: "float", bits: 64 };
    case "boolean":
      return { kind: "bool" };
    case "text":
    case "character varying":
    case "character":
    case "name":
    case '"char"':
      return { kind: "string" };
    case "date":
      return { kind: "date" };
    case "time without time zone":
      return { kind: "time", zone: false };
    case "time with time zone":
      return { kind: "time", zone: true };
    case "timestamp without time zone":
      return { kind: "timestamp", zone: false };
    case "timestamp with time zone":
      return { kind: "timestamp", zone: true };
    case "uuid":
      return { kind: "uuid" };
    case "bytea":
      return { kind: "bytes" };
    case "json":
      return { kind: "json", binary: false };
    case "jsonb":
      return { kind: "json", binary: true };
    default:
      return { kind: "other" };
  }
}

// As `format_type` writes them: `numeric(10,-2)`, `timestamp(3) without time zone`, `interval day to second(3)`, `"char"[]`.
const typeNames =
  /^("char"|"bit"|[a-z][\w.]{0,63})( (varying|precision|with|without|time|zone|to|year|month|day|hour|minute|second)){0,4}(\(\d+(,-?\d+)?\))?( (varying|with|without|time|zone)){0,3}(\[\])*$/;

/** The PostgreSQL type in which a column of the source is made. What a file or a server calls one stands in our SQL: it must be a name. */
export function nativeOf({ native, type }: Column): string {
  return native !== undefined && typeNames.test(native) ? native : nativeOfType(type);
}

function nativeOfType(type: ColumnType): string {
  switch (type.kind) {
    case "int":
      return type.bits === 16 ? "smallint" : type.bits === 32 ? "integer" : "bigint";
    case "decimal":
      return type.precision === undefined ? "numeric" : `numeric(${type.precision},${type.scale ?? 0})`;
    case "float":
      return type.bits === 32 ? "real" : "double precision";
    case "bool":
      return "boolean";
    case "date":
      return "date";
    case "time":
      return type.zone ? "time with time zone" : "time without time zone";
    case "timestamp":
      return type.zone ? "timestamp with time zone" : "timestamp without time zone";
    case "uuid":
      return "uuid";
    case "bytes":
      return "bytea";
    case "json":
      return type.binary ? "jsonb" : "json";
    case "array":
      return `${nativeOfType(type.items)}[]`;
    default:
      return "text";
  }
}

// Whose binary form is not what its text says, or that have none (aclitem): xml loses or gains a declaration, an empty tsquery cannot be
// read back, and the numbers behind regclass and its kin mean something else in another database.
const textOnly =
  /^(xml|tsquery|aclitem|reg(class|proc|procedure|oper|operator|type|role|namespace|config|dictionary|collation))(\[\])*$/;

/** True where binary COPY brings the column's values into `there` (undefined: a column made for it) exactly as its text form would. */
export function binaryAlike(
  column: Column,
  there: (Column & { readonly declared: string; readonly builtin: boolean }) | undefined,
): boolean {
  const native = nativeOf(column);
  if (textOnly.test(native)) return false;
  if (there === undefined || there.declared === native) return there?.builtin ?? true;
  // A cast that only widens; others cut, round or forget: bit varying(5), cidr, character(3).
  return there.builtin && widens.has(there.type.kind) && !/^(character\(|bpchar)/.test(native) && holds(there, column);
}

const widens = new Set(["int", "decimal", "float", "timestamp", "string"]);

/** An enum's hash, or that of a number behind a name, is another one on another server. */
export function hashedAlike(native: string, there: { readonly builtin: boolean } | undefined): boolean {
  return !textOnly.test(native) && (there?.builtin ?? true);
}
