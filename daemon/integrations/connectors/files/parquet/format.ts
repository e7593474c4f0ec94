// Reads Parquet, one row group after another; what becomes of the values stands in values.ts. Types that Parquet lacks come back
// by the names in the file's metadata, where we have written it.
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import type { AsyncBuffer, FileMetaData, SchemaElement } from "hyparquet";
import { MagicError } from "#contract/errors.ts";
import type { Reject } from "#contract/sync.ts";
import type { Batch } from "../../../engine/source.ts";
import type { Row } from "../../../engine/types.ts";
import type { FileFormat, FileReader } from "../format.ts";
import { openSnapshot, type Snapshot } from "../snapshot.ts";
import { lz4Block } from "./lz4-block.ts";
import { flatReader, type NextValue, nestedReader } from "./pages.ts";
import { type Field, type Plan, parsers, planOf, Unreadable } from "./values.ts";
import { createParquet, METADATA_KEY } from "./writer.ts";

const BATCH_ROWS = 5000;

export const parquet: FileFormat = { open: openParquet, create: createParquet };

async function openParquet(path: string): Promise<FileReader> {
  const snapshot = await openSnapshot(path);
  const file = bufferOf(snapshot);
  const { metadata, plans } = await described(file).catch(async (error: Error) => {
    await snapshot.close();
    throw new MagicError("source_failed", `${path} is no Parquet file that can be read: ${error.message}`);
  });
  return {
    columns: plans.map(({ column }) => column),
    records: Number(metadata.num_rows),
    read: () => readGroups(file, metadata, plans, path),
    close: snapshot.close,
  };
}

async function described(file: AsyncBuffer): Promise<{ metadata: FileMetaData; plans: readonly Plan[] }> {
  const { parquetMetadataAsync } = await import("hyparquet");
  if (await hasEncryptedFooter(file)) throw new Error(ENCRYPTED);
  const metadata = await parquetMetadataAsync(file);
  if (metadata.row_groups.some(({ columns }) => columns.some((column) => column.crypto_metadata)))
    throw new Error(ENCRYPTED);
  const natives = nativesIn(metadata.key_value_metadata?.find(({ key }) => key === METADATA_KEY)?.value);
  const fields = topLevel(metadata);
  checkPlaces(metadata, fields);
  const plans = fields.map((field) => planOf(field, natives.get(field.element.name)));
  if (plans.some(({ column }) => typeof column.name !== "string")) throw new Error("a column has no name");
  return { metadata, plans };
}

const ENCRYPTED = "it is encrypted, and keys of Parquet's encryption cannot be given.";

// Parquet format, Encryption.md, 5.4.
async function hasEncryptedFooter(file: AsyncBuffer): Promise<boolean> {
  const magic = await file.slice(Math.max(0, file.byteLength - 4), file.byteLength);
  return Buffer.from(magic).toString("latin1") === "PARE";
}

// PostgreSQL's names of the columns' types, by the columns' names. What somebody else has put there says nothing.
function nativesIn(kept: string | undefined): ReadonlyMap<string, string> {
  try {
    const named = JSON.parse(kept ?? "[]") as readonly { readonly name: string; readonly native: string }[];
    return new Map(named.flatMap(({ name, native }) => (typeof native === "string" ? [[name, native]] : [])));
  } catch {
    return new Map();
  }
}

// The library's own opens the path anew for every part.
function bufferOf({ size, slice }: Snapshot): AsyncBuffer {
  return {
    byteLength: size,
    slice: async (start, named = size) => {
      const end = Math.min(named, size);
      if (!(start >= 0 && start <= end)) throw new Error("it names a part of itself that it does not have");
      return (await slice(start, end)).buffer as ArrayBuffer;
    },
  };
}

// The schema comes as a list, parents before their children.
function topLevel({ schema }: FileMetaData): readonly Field[] {
  let next = 0;
  const take = (): Field => {
    const element = schema[next++] as SchemaElement;
    return { element, children: Array.from({ length: element.num_children ?? 0 }, take) };
  };
  return take().children;
}

// What is stored under a name that the schema does not have would be read by nobody.
function checkPlaces({ row_groups }: FileMetaData, fields: readonly Field[]): void {
  const paths = new Set<string>();
  const visit = ({ element, children }: Field, above: string): void => {
    const path = `${above}\0${element.name}`;
    if (children.length === 0) paths.add(path);
    for (const child of children) visit(child, path);
  };
  for (const field of fields) visit(field, "");
  for (const { columns } of row_groups)
    for (const { meta_data } of columns) {
      const path = meta_data?.path_in_schema ?? [];
      if (!paths.has(`\0${path.join("\0")}`)) throw new Error(`it has no column ${JSON.stringify(path.join("."))}`);
    }
}

// Snappy is hyparquet's own; what other writers use is Node's.
const compressors = {
  GZIP: (input: Uint8Array) => gunzipSync(input),
  ZSTD: (input: Uint8Array) => zstdDecompressSync(input),
  BROTLI: (input: Uint8Array) => brotliDecompressSync(input),
  LZ4_RAW: lz4Block,
};

async function* readGroups(
  file: AsyncBuffer,
  metadata: FileMetaData,
  plans: readonly Plan[],
  path: string,
): AsyncGenerator<Batch> {
  const broken = (error: unknown) =>
    new MagicError("source_failed", `${path} cannot be read: ${(error as Error).message}`, { cause: error });
  const [{ DEFAULT_PARSERS }, { parquetSchema }] = await Promise.all([
    import("hyparquet/src/convert.js"),
    import("hyparquet"),
  ]);
  const decoding = { parsers: { ...DEFAULT_PARSERS, ...parsers }, compressors };
  const whole = { file, tree: parquetSchema(metadata), decoding };
  let start = 0;
  for (const group of metadata.row_groups) {
    const count = Number(group.num_rows);
    const readers: NextValue[] = [];
    for (const { column, nested } of plans) {
      const reader = nested ? nestedReader : flatReader;
      const next = await reader(whole, group, column.name).catch((error: unknown) => {
        throw broken(error);
      });
      readers.push(next);
    }
    for (let at = 0; at < count && plans.length > 0; at += BATCH_ROWS) {
      try {
        yield decoded(readers, Math.min(BATCH_ROWS, count - at), plans, start + at);
      } catch (error) {
        throw broken(error);
      }
    }
    start += count;
  }
}

function decoded(columns: readonly NextValue[], count: number, plans: readonly Plan[], first: number): Batch {
  const rows: Row[] = [];
  const places: number[] = [];
  const rejects: Reject[] = [];
  let bytes = 0;
  for (let at = 0; at < count; at++) {
    const stored = columns.map((next) => next());
    const row: Row = [];
    try {
      for (const [column, { decode }] of plans.entries()) {
        const raw = stored[column];
        const value = raw === null || raw === undefined ? null : decode(raw as never);
        bytes += value?.length ?? 1;
        row.push(value);
      }
      rows.push(row);
      places.push(first + at);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      const column = plans[row.length]?.column.name ?? null;
      rejects.push({ key: `row ${first + at + 1}`, column, reason: error.message });
    }
  }
  return { rows, places, rejects, bytes };
}
