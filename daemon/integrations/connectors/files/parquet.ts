// Reads Parquet. The reader takes physical values: hyparquet's own conversions go through Number and Date. Types that Parquet lacks
// come back by the names in the file's metadata, where we have written it.
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import type { FileMetaData, SchemaElement } from "hyparquet";
import { MagicError } from "#contract/errors.ts";
import { floatText } from "../../engine/float-text.ts";
import type { Batch } from "../../engine/source.ts";
import { dateOf, timeOf, timestampOf } from "../../engine/temporal.ts";
import type { Column, ColumnType, Row, Value } from "../../engine/types.ts";
import { typeOfNative } from "../postgres/types.ts";
import { fileError } from "./errors.ts";
import type { FileFormat, FileReader } from "./format.ts";
import { createParquet, METADATA_KEY } from "./parquet-writer.ts";

export const parquet: FileFormat = { open: openParquet, create: createParquet };

type Decode = (raw: never) => Value;

async function openParquet(path: string): Promise<FileReader> {
  const { asyncBufferFromFile, parquetMetadataAsync } = await import("hyparquet");
  const file = await asyncBufferFromFile(path).catch((error: NodeJS.ErrnoException) => {
    throw fileError(error, path);
  });
  const metadata = await parquetMetadataAsync(file).catch((error: Error) => {
    throw new MagicError("source_failed", `${path} is no Parquet file that can be read: ${error.message}`);
  });
  const natives = new Map<string, string>();
  const kept = metadata.key_value_metadata?.find(({ key }) => key === METADATA_KEY)?.value;
  if (kept)
    for (const { name, native } of JSON.parse(kept) as { name: string; native: string }[]) natives.set(name, native);
  const fields = topLevel(metadata);
  const plans = fields.map(({ element, nested }) => planOf(element, nested, natives.get(element.name)));
  return {
    columns: plans.map(({ column }) => column),
    records: Number(metadata.num_rows),
    read: () => readGroups(file, metadata, plans),
  };
}

function topLevel(metadata: FileMetaData): { element: SchemaElement; nested: boolean }[] {
  const fields: { element: SchemaElement; nested: boolean }[] = [];
  const skip = (at: number): number => {
    let next = at + 1;
    for (let n = metadata.schema[at]?.num_children ?? 0; n > 0; n--) next = skip(next);
    return next;
  };
  for (let at = 1; at < metadata.schema.length; at = skip(at)) {
    const element = metadata.schema[at] as SchemaElement;
    fields.push({ element, nested: (element.num_children ?? 0) > 0 || element.repetition_type === "REPEATED" });
  }
  return fields;
}

// Decides how a column's values are read, and takes away what would make hyparquet round them.
function planOf(
  element: SchemaElement,
  nested: boolean,
  native: string | undefined,
): { column: Column; decode: Decode } {
  const make = (type: ColumnType, decode: Decode): { column: Column; decode: Decode } => ({
    column: {
      name: element.name,
      nullable: true,
      type: native === undefined ? type : typeOfNative(native),
      ...(native === undefined ? {} : { native }),
    },
    decode,
  });
  if (nested) return make({ kind: "json", binary: true }, (raw) => JSON.stringify(raw, plainJson));
  const { type, converted_type: converted, logical_type: logical, scale = 0, precision } = element;
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
    return make({ kind: "date" }, ((days: number) => dateOf(days)) as Decode);
  }
  const unit = logical?.type === "TIMESTAMP" || logical?.type === "TIME" ? logical.unit : converted?.split("_")[1];
  if (logical?.type === "TIMESTAMP" || converted?.startsWith("TIMESTAMP")) {
    const zone = logical?.type === "TIMESTAMP" ? logical.isAdjustedToUTC : true;
    raw();
    return make({ kind: "timestamp", zone }, ((stored: bigint) => timestampText(stored, unit, zone)) as Decode);
  }
  if (logical?.type === "TIME" || converted?.startsWith("TIME")) {
    raw();
    return make({ kind: "time", zone: false }, ((stored: bigint | number) =>
      timeOf(microsFrom(BigInt(stored), unit))) as Decode);
  }
  if (converted === "JSON") {
    element.converted_type = "UTF8";
    return make({ kind: "json", binary: true }, ((text: string) => text) as Decode);
  }
  switch (type) {
    case "BOOLEAN":
      return make({ kind: "bool" }, ((value: boolean) => String(value)) as Decode);
    case "INT32":
      return make(converted === "UINT_32" ? { kind: "int", bits: 64 } : { kind: "int", bits: 32 }, String as never);
    case "INT64":
      return make(
        converted === "UINT_64" ? { kind: "decimal", precision: 20, scale: 0 } : { kind: "int", bits: 64 },
        String as never,
      );
    case "FLOAT":
      return make({ kind: "float", bits: 32 }, ((value: number) => floatText(value, 32)) as Decode);
    case "DOUBLE":
      return make({ kind: "float", bits: 64 }, ((value: number) => floatText(value, 64)) as Decode);
    case "INT96":
      return make({ kind: "timestamp", zone: true }, ((nanos: bigint) =>
        timestampText(nanos, "NANOS", true)) as Decode);
  }
  if (logical?.type === "UUID") return make({ kind: "uuid" }, String as never);
  const text = converted === "UTF8" || converted === "ENUM" || logical?.type === "STRING" || logical?.type === "ENUM";
  if (text)
    return make({ kind: "string" }, ((value: string | Uint8Array) =>
      typeof value === "string" ? value : Buffer.from(value).toString("utf8")) as Decode);
  return make({ kind: "bytes" }, ((value: Uint8Array) => value) as Decode);
}

function microsFrom(value: bigint, unit: string | undefined): bigint {
  return unit === "MILLIS" ? value * 1000n : unit === "NANOS" ? value / 1000n : value;
}

// Nanoseconds that PostgreSQL's timestamps cannot hold stay in the text, so that the destination refuses or keeps them.
function timestampText(value: bigint, unit: string | undefined, zone: boolean): string {
  const text = timestampOf(microsFrom(value, unit), zone);
  const rest = unit === "NANOS" ? value % 1000n : 0n;
  return rest === 0n ? text : `${timestampOf(microsFrom(value, unit), false)} (and ${rest} ns)`;
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

function plainJson(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(value));
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString("hex")}` : value;
}

// Snappy is hyparquet's own; what other writers use is Node's.
const compressors = {
  GZIP: (input: Uint8Array) => gunzipSync(input),
  ZSTD: (input: Uint8Array) => zstdDecompressSync(input),
  BROTLI: (input: Uint8Array) => brotliDecompressSync(input),
};

async function* readGroups(
  file: never | object,
  metadata: FileMetaData,
  plans: readonly { decode: Decode }[],
): AsyncGenerator<Batch> {
  const { parquetRead } = await import("hyparquet");
  const text = (value: bigint) => value;
  const parsers = {
    timestampFromMilliseconds: text,
    timestampFromMicroseconds: text,
    timestampFromNanoseconds: text,
    dateFromDays: (days: number) => days,
  };
  let start = 0;
  for (const group of metadata.row_groups) {
    const end = start + Number(group.num_rows);
    let read: unknown[][] = [];
    await parquetRead({
      file: file as never,
      metadata,
      rowStart: start,
      rowEnd: end,
      utf8: false,
      parsers,
      compressors,
      onComplete: (rows) => {
        read = rows;
      },
    });
    start = end;
    for (let at = 0; at < read.length; at += 5000) {
      let bytes = 0;
      const rows = read.slice(at, at + 5000).map(
        (stored): Row =>
          plans.map(({ decode }, column) => {
            const raw = stored[column];
            const value = raw === null || raw === undefined ? null : decode(raw as never);
            bytes += value?.length ?? 1;
            return value;
          }),
      );
      yield { rows, bytes };
    }
  }
}
