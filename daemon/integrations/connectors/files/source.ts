// A CSV, JSON Lines or Parquet file as a source: one object, read from the beginning; a cursor only filters what is read.
import { basename, extname } from "node:path";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { discoveredObject } from "../../engine/discovered.ts";
import { pickColumns } from "../../engine/pick.ts";
import type { Batch, ReadRequest, Source, SourceStream, StreamState } from "../../engine/source.ts";
import type { Column, Row, Value } from "../../engine/types.ts";
import { fileError } from "./errors.ts";
import type { FileReader } from "./format.ts";
import { type FormatName, formatOf } from "./formats.ts";

export function fileSource(path: string, format: FormatName): Source {
  const open = async () => {
    const reader = await formatOf(format);
    return reader.open(path).catch((error: NodeJS.ErrnoException) => {
      throw isMagicError(error) ? error : fileError(error, path);
    });
  };
  return {
    check: async () => {
      await open();
    },
    discover: async () => {
      const reader = await open();
      return [
        discoveredObject(basename(path, extname(path)), { columns: reader.columns, primaryKey: [] }, reader.records),
      ];
    },
    open: async (request) => openStream(await open(), request, path),
    close: async () => {},
  };
}

function openStream(reader: FileReader, request: ReadRequest, path: string): SourceStream {
  const schema = pickColumns({ columns: reader.columns, primaryKey: [] }, request, path);
  const places = schema.columns.map(({ name }) => reader.columns.findIndex((column) => column.name === name));
  const whole = places.length === reader.columns.length && places.every((place, at) => place === at);
  const cursor = cursorOf(reader, request);
  const { raw } = reader;
  return {
    schema,
    snapshot: true,
    changed: true,
    warnings: [],
    partitions: [{ id: "all", records: reader.records }],
    rawFormats: raw && whole && !cursor ? ["csv"] : [],
    ...(raw ? { copyRaw: async (_partition, { checks }) => raw(checks ?? []) } : {}),
    endState: () => cursor?.state() ?? null,
    count: async () => reader.records,
    keys: () => readKeys(reader, schema.primaryKey),
    read: async function* (): AsyncGenerator<Batch> {
      for await (const batch of reader.read()) {
        if (request.signal.aborted) throw request.signal.reason;
        request.waiting(`records of ${path}`);
        const rows = cursor ? batch.rows.filter(cursor.wants) : batch.rows;
        const { places: _, ...rest } = batch;
        yield {
          ...(cursor ? rest : batch),
          rows: whole ? rows : rows.map((row) => places.map((at) => row[at] ?? null)),
        };
      }
    },
    close: async () => {},
  };
}

async function* readKeys(reader: FileReader, key: readonly string[]): AsyncGenerator<readonly Value[][]> {
  const places = key.map((name) => reader.columns.findIndex((column) => column.name === name));
  for await (const { rows } of reader.read()) yield rows.map((row) => places.map((at) => row[at] ?? null));
}

interface Cursor {
  wants(row: Row): boolean;
  state(): StreamState;
}

// Records after the last greatest value; with a key the ones that equal it are read again, in case more of them have come.
function cursorOf(reader: FileReader, request: ReadRequest): Cursor | null {
  if (request.mode !== "incremental") return null;
  const at = reader.columns.findIndex(({ name }) => name === request.cursorField);
  const column = reader.columns[at];
  if (!column)
    throw new MagicError(
      "validation_failed",
      request.cursorField === null
        ? "An incremental sync needs a cursor field."
        : `There is no column ${JSON.stringify(request.cursorField)} for the cursor.`,
    );
  const before = request.state?.cursor ?? null;
  const compare = comparison(column);
  const from = (request.primaryKey ?? []).length > 0 ? 0 : 1;
  let greatest = before;
  return {
    wants: (row) => {
      const value = row[at] ?? null;
      if (typeof value !== "string") return before === null;
      if (greatest === null || compare(value, greatest) > 0) greatest = value;
      return before === null || compare(value, before) >= from;
    },
    state: () => ({ cursor: greatest }),
  };
}

const number = /^-?\d+(\.\d+)?$/;

/** Numbers by value, everything else by its text (RFC 3339 times of one zone sort so). */
function comparison(column: Column): (a: string, b: string) => number {
  const text = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  if (column.type.kind === "timestamp" || column.type.kind === "date") return text;
  return (a, b) => (number.test(a) && number.test(b) ? compareDecimals(a, b) : text(a, b));
}

function compareDecimals(a: string, b: string): number {
  const scale = Math.max(a.split(".")[1]?.length ?? 0, b.split(".")[1]?.length ?? 0);
  const whole = (value: string) => {
    const [integer = "0", fraction = ""] = value.split(".");
    return BigInt(integer + fraction.padEnd(scale, "0"));
  };
  const [x, y] = [whole(a), whole(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}
