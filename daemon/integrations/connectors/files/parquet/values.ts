// How the values of a Parquet column become the engine's: a plan for each column, from the physical values. hyparquet's own conversions
// go through Number and Date, so what would start them is taken out of the schema.
import { isUtf8 } from "node:buffer";
import type { SchemaElement } from "hyparquet";
import { floatText } from "../../../engine/float-text.ts";
import { betweenMicros, dateOf, timeOf, timestampOf } from "../../../engine/temporal.ts";
import type { Column, ColumnType, Value } from "../../../engine/types.ts";
import { typeOfNative } from "../../postgres/types.ts";
import { jsonOf } from "../jsonl.ts";

/** A part of the schema with its children. */
export interface Field {
  readonly element: SchemaElement;
  readonly children: readonly Field[];
}

export interface Plan {
  readonly column: Column;
  /** True for lists, maps and structs. */
  readonly nested: boolean;
  /** Throws Unreadable for a value that has no text. */
  readonly decode: (raw: never) => Value;
}

/** Why a value cannot be read; the record is rejected. */
export class Unreadable extends Error {}

/** What hyparquet gives to its parsers goes on as it is. */
export const parsers = {
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  dateFromDays: (days: number) => days,
  // Bytes stay bytes where decoding would replace some.
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes && isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8") : bytes,
};

/** `native`: PostgreSQL's name for the type, where the file's metadata have it. */
export function planOf(field: Field, native?: string): Plan {
  const { element } = field;
  const isNested = field.children.length > 0 || element.repetition_type === "REPEATED";
  const make = (type: ColumnType, decode: (raw: never) => Value): Plan => ({
    nested: isNested,
    column: {
      name: element.name,
      nullable: true,
      type: native === undefined ? type : typeOfNative(native),
      ...(native === undefined ? {} : { native }),
    },
    decode,
  });
  if (isNested) return make({ kind: "json", binary: true }, nested(field));
  const { type, converted_type: converted, logical_type: logical, scale = 0, precision } = element;
  if (logical?.type === "NULL") {
    const plan = make({ kind: "string" }, String as never);
    return { ...plan, column: { ...plan.column, blank: true } };
  }
  const raw = () => {
    delete element.converted_type;
    delete element.logical_type;
  };
  if (converted === "DECIMAL" || logical?.type === "DECIMAL") {
    raw();
    return make({ kind: "decimal", precision: precision ?? 38, scale }, (stored) => decimalText(stored, scale));
  }
  if (converted === "DATE" || logical?.type === "DATE") {
    raw();
    return make({ kind: "date" }, dateOf as never);
  }
  const unit = logical?.type === "TIMESTAMP" || logical?.type === "TIME" ? logical.unit : converted?.split("_")[1];
  if (logical?.type === "TIMESTAMP" || converted?.startsWith("TIMESTAMP")) {
    const zone = logical?.type === "TIMESTAMP" ? logical.isAdjustedToUTC : true;
    raw();
    return make({ kind: "timestamp", zone }, ((stored: bigint) => timestampText(stored, unit, zone)) as never);
  }
  if (logical?.type === "TIME" || converted?.startsWith("TIME")) {
    raw();
    return make({ kind: "time", zone: false }, ((stored: bigint | number) => timeText(BigInt(stored), unit)) as never);
  }
  if (converted === "JSON" || logical?.type === "JSON") {
    delete element.logical_type;
    element.converted_type = "UTF8";
    return make({ kind: "json", binary: true }, textOf as never);
  }
  if (logical?.type === "FLOAT16")
    return make({ kind: "float", bits: 32 }, ((value: number) => floatText(value, 32)) as never);
  if (logical?.type === "UUID") return make({ kind: "uuid" }, String as never);
  const unsigned = (bits: number) =>
    converted === `UINT_${bits}` || (logical?.type === "INTEGER" && logical.bitWidth === bits && !logical.isSigned);
  switch (type) {
    case "BOOLEAN":
      return make({ kind: "bool" }, String as never);
    case "INT32":
      return make({ kind: "int", bits: unsigned(32) ? 64 : 32 }, String as never);
    case "INT64":
      return make(
        unsigned(64) ? { kind: "decimal", precision: 20, scale: 0 } : { kind: "int", bits: 64 },
        String as never,
      );
    case "FLOAT":
      return make({ kind: "float", bits: 32 }, ((value: number) => floatText(value, 32)) as never);
    case "DOUBLE":
      return make({ kind: "float", bits: 64 }, ((value: number) => floatText(value, 64)) as never);
    case "INT96":
      return make({ kind: "timestamp", zone: true }, ((nanos: bigint) => timestampText(nanos, "NANOS", true)) as never);
  }
  if (converted === "UTF8" || converted === "ENUM" || logical?.type === "STRING" || logical?.type === "ENUM")
    return make({ kind: "string" }, textOf as never);
  // BSON, INTERVAL, geometries, what comes yet.
  raw();
  return make({ kind: "bytes" }, ((value: Uint8Array) => value) as never);
}

function textOf(value: string | Uint8Array): string {
  if (typeof value === "string") return value;
  if (!isUtf8(value)) throw new Unreadable("the text is no valid UTF-8");
  return Buffer.from(value).toString("utf8");
}

// Lists, maps and structs as JSON text, their parts by plans of their own: JSON.stringify would round decimals and drop NaN.
function nested(field: Field): (raw: never) => Value {
  const write = writerOf(field);
  return (raw) => write(raw);
}

function writerOf(field: Field, item = false): (raw: unknown) => string {
  const { element, children } = field;
  const [first] = children;
  // What hyparquet takes for a list or a map: the same rules here.
  const repeated = first?.element.repetition_type === "REPEATED";
  if (element.converted_type === "LIST" && children.length === 1 && first && repeated && first.children.length <= 1) {
    const [inner] = first.children;
    return listOf(inner ? writerOf(inner) : writerOf(first, true));
  }
  if (element.converted_type === "MAP" && children.length === 1 && first && repeated && first.children.length === 2) {
    const [key, value] = first.children as [Field, Field];
    leafPlan(key);
    const write = writerOf(value);
    return objectOf(() => write);
  }
  if (element.repetition_type === "REPEATED" && !item) return listOf(writerOf(field, true));
  if (children.length > 0) {
    const members = new Map(children.map((child) => [child.element.name, writerOf(child)]));
    return objectOf((name) => members.get(name));
  }
  const { column, decode } = leafPlan(field);
  return (raw) => (raw === null || raw === undefined ? "null" : jsonOf(decode(raw as never), column.type));
}

// A leaf that is repeated is planned as one of its items.
function leafPlan({ element }: Field): Plan {
  const repetition = element.repetition_type;
  if (repetition === "REPEATED") element.repetition_type = "OPTIONAL";
  const plan = planOf({ element, children: [] });
  if (repetition !== undefined) element.repetition_type = repetition;
  return plan;
}

function listOf(write: (raw: unknown) => string): (raw: unknown) => string {
  return (raw) =>
    raw === null || raw === undefined ? "null" : `[${Array.from(raw as ArrayLike<unknown>, write).join(",")}]`;
}

function objectOf(writerFor: (name: string) => ((raw: unknown) => string) | undefined): (raw: unknown) => string {
  return (raw) => {
    if (raw === null || raw === undefined) return "null";
    const members = Object.entries(raw).map(
      ([name, value]) => `${JSON.stringify(name)}:${writerFor(name)?.(value) ?? "null"}`,
    );
    return `{${members.join(",")}}`;
  };
}

// Whole microseconds, and the nanoseconds beyond them (0 to 999).
function split(value: bigint, unit: string | undefined): [micros: bigint, nanos: bigint] {
  if (unit !== "NANOS") return [unit === "MILLIS" ? value * 1000n : value, 0n];
  const nanos = ((value % 1000n) + 1000n) % 1000n;
  return [(value - nanos) / 1000n, nanos];
}

const withRest = (text: string, nanos: bigint) => (nanos === 0n ? text : betweenMicros(text, nanos));

function timestampText(value: bigint, unit: string | undefined, zone: boolean): string {
  const [micros, nanos] = split(value, unit);
  return withRest(timestampOf(micros, zone), nanos);
}

function timeText(value: bigint, unit: string | undefined): string {
  const [micros, nanos] = split(value, unit);
  return withRest(timeOf(micros), nanos);
}

function decimalText(stored: Uint8Array | bigint | number, scale: number): string {
  let value: bigint;
  if (stored instanceof Uint8Array) {
    value =
      stored.length === 0 ? 0n : BigInt.asIntN(stored.length * 8, BigInt(`0x${Buffer.from(stored).toString("hex")}`));
  } else value = BigInt(stored);
  if (scale === 0) return String(value);
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}
