// SQLite's declared types and the engine's. A type that SQLite lacks is declared as "TEXT <PostgreSQL's name>": text affinity, so that
// no digit is changed, and the name comes back when the file is read.
import { truthOf } from "../../engine/truth.ts";
import { type Column, type ColumnType, typeName, type Value } from "../../engine/types.ts";
import { nativeOf, typeOfNative } from "../postgres/types.ts";

const direct: Readonly<Record<string, string>> = {
  smallint: "INT2",
  integer: "INT4",
  bigint: "BIGINT",
  "double precision": "DOUBLE PRECISION",
  real: "FLOAT4",
  boolean: "BOOLEAN",
  text: "TEXT",
  bytea: "BLOB",
};

/** How a column of the source is declared. */
export function declare(column: Column): string {
  const native = nativeOf(column);
  return direct[native] ?? `"TEXT ${native.replaceAll('"', '""')}"`;
}

/** The engine's column for a declared one; values of SQLite's own types may be anything: `untyped`. */
export function columnOf(name: string, declared: string, nullable: boolean): Column {
  if (declared.startsWith("TEXT ")) {
    const native = declared.slice(5);
    return { name, nullable, type: typeOfNative(native), native, loose: true };
  }
  for (const [native, ours] of Object.entries(direct))
    if (ours === declared && ours !== "TEXT" && ours !== "BIGINT" && ours !== "DOUBLE PRECISION")
      return { name, nullable, type: typeOfNative(native), native, untyped: true, loose: true };
  return { name, nullable, type: typeByAffinity(declared.toUpperCase()), untyped: true };
}

// The rules of https://www.sqlite.org/datatype3.html, 3.1.
function typeByAffinity(declared: string): ColumnType {
  if (/BOOL/.test(declared)) return { kind: "bool" };
  if (/INT/.test(declared)) return { kind: "int", bits: 64 };
  if (/CHAR|CLOB|TEXT/.test(declared)) return { kind: "string" };
  if (declared === "BLOB") return { kind: "bytes" };
  if (/REAL|FLOA|DOUB/.test(declared)) return { kind: "float", bits: 64 };
  if (/NUMERIC|DECIMAL/.test(declared)) return { kind: "decimal" };
  return { kind: "string" };
}

// SQLite stores 0.0 for -0.0; a blob is kept as it is in a column of any type.
const MINUS_ZERO = Buffer.from("-0");

export type Stored = null | bigint | number | string | Uint8Array;

/** A stored value in the engine's form; a string that says why not. */
export function readValue(stored: Stored, type: ColumnType): { value: Value } | { reason: string } {
  if (stored === null) return { value: null };
  if (typeof stored === "object" && type.kind === "float" && MINUS_ZERO.equals(stored)) return { value: "-0" };
  if (typeof stored === "object")
    return type.kind === "bytes" ? { value: stored } : { reason: `a blob in a column of type ${typeName(type)}` };
  if (type.kind === "bytes")
    return { reason: `a ${typeof stored === "string" ? "text" : "number"} in a column of type bytes` };
  if (type.kind === "bool" && typeof stored === "bigint")
    return stored === 0n || stored === 1n
      ? { value: stored === 1n ? "true" : "false" }
      : { reason: `${stored} is no boolean` };
  if (type.kind === "bool") {
    const word = typeof stored === "string" ? truthOf(stored) : undefined;
    return word === undefined ? { reason: `${String(stored).slice(0, 60)} is no boolean` } : { value: word };
  }
  if (typeof stored === "number") return { value: Object.is(stored, -0) ? "-0" : String(stored) };
  return { value: String(stored) };
}

/** What is bound for a value; throws a RangeError where SQLite's type would change it. */
export function writeValue(value: Value, column: Column, affinity: Affinity, declared = ""): Stored {
  if (value === null || typeof value !== "string") return value;
  switch (column.type.kind) {
    case "int":
      if (affinity === "text") return value;
      // Another SQLite's, which keeps what is no 64-bit integer as text or a REAL: such a column holds it as well.
      if (!whole.test(value) || !fits64(value)) return asText(value, affinity, declared);
      // A Number is bound as a double, which such a column turns back into an integer; a BigInt costs more.
      return value.length < 16 && (affinity === "integer" || affinity === "numeric") ? Number(value) : BigInt(value);
    case "bool":
      if (affinity === "text") return value;
      if (value !== "true" && value !== "false") throw new RangeError(`${value.slice(0, 60)} is no boolean`);
      return value === "true" ? 1n : 0n;
    case "float": {
      // As text SQLite would write fifteen digits.
      if (affinity === "text") return value;
      const number = /^-?(\d|Infinity$)/.test(value) ? Number(value) : Number.NaN;
      if (Object.is(number, -0)) return MINUS_ZERO;
      return Number.isNaN(number) ? value : number;
    }
    default:
      return asText(value, affinity, declared);
  }
}

function asText(value: string, affinity: Affinity, declared: string): Stored {
  if (affinity === "text" || affinity === "blob") return value;
  // As text the negative one would be greater than every number.
  if (ofNumbers(declared) && /^-?Infinity$/.test(value)) return Number(value);
  holdsExactly(value, affinity, ofNumbers(declared));
  return value;
}

const whole = /^-?\d+$/;
const fits64 = (digits: string) => digits.length < 19 || BigInt.asIntN(64, BigInt(digits)) === BigInt(digits);

export type Affinity = "integer" | "text" | "blob" | "real" | "numeric";

export function affinityOf(declared: string): Affinity {
  const upper = declared.toUpperCase();
  if (upper.includes("INT")) return "integer";
  if (/CHAR|CLOB|TEXT/.test(upper)) return "text";
  if (upper === "" || upper.includes("BLOB")) return "blob";
  return /REAL|FLOA|DOUB/.test(upper) ? "real" : "numeric";
}

const ofNumbers = (declared: string) => /INT|REAL|FLOA|DOUB|NUMERIC|DECIMAL|BOOL/i.test(declared);
const numeric = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

// Text that looks like a number is stored as one in such a column: refused where digits would be lost, or, where the declared type is
// none of numbers (DATE, STRING), where it would come back as another text.
function holdsExactly(text: string, affinity: Affinity, numbers: boolean): void {
  const trimmed = text.trim();
  if (!numeric.test(trimmed)) return;
  const number = Number(trimmed);
  const digits = (value: string) => {
    const bare = value.replace(/^-?0*/, "");
    return /\.\d*$/.test(bare) ? bare.replace(/(?<!0)0+$/, "").replace(/\.$/, "") : bare;
  };
  const kept =
    affinity !== "real" && /^-?\d{1,18}$/.test(trimmed)
      ? String(BigInt(trimmed))
      : Number.isFinite(number) && digits(trimmed) === digits(String(number))
        ? trimmed
        : null;
  const minusZero = affinity === "real" && number === 0 && trimmed.startsWith("-");
  if (kept === null || minusZero || (!numbers && (kept !== text || String(number) !== text)))
    throw new RangeError(`${text.slice(0, 60)} does not fit the column's numeric storage exactly`);
}
