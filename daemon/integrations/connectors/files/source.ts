// A CSV, JSON Lines or Parquet file as a source: one object, read from the beginning; a cursor only filters what is read.
import { basename, extname } from "node:path";
import type { SyncFailure } from "#contract/sync.ts";
import { cursorWentBackWarning } from "../../engine/cursor.ts";
import { discoveredObject } from "../../engine/discovered.ts";
import { pickColumns } from "../../engine/pick.ts";
import type { Batch, ReadRequest, Source, SourceStream } from "../../engine/source.ts";
import type { Value } from "../../engine/types.ts";
import { cursorOf } from "./cursor.ts";
import type { FileReader } from "./format.ts";
import { type FormatName, formatOf } from "./formats.ts";

export function fileSource(path: string, format: FormatName): Source {
  const open = async () => (await formatOf(format)).open(path);
  return {
    check: async () => {
      await (await open()).close();
    },
    discover: async () => {
      const reader = await open();
      await reader.close();
      return [
        discoveredObject(basename(path, extname(path)), { columns: reader.columns, primaryKey: [] }, reader.records),
      ];
    },
    open: async (request) => {
      const reader = await open();
      try {
        return openStream(reader, request, path);
      } catch (error) {
        await reader.close();
        throw error;
      }
    },
    close: async () => {},
  };
}

function openStream(reader: FileReader, asked: ReadRequest, path: string): SourceStream {
  // JSON Lines without a line tell no columns: they are those of before, else none that could be asked for.
  const columns = reader.columns.length > 0 ? reader.columns : (asked.known?.columns ?? []);
  const request: ReadRequest =
    columns.length > 0 ? asked : { ...asked, mode: "full_refresh", columns: null, primaryKey: null };
  const schema = pickColumns({ columns, primaryKey: [] }, request, path);
  const places = schema.columns.map(({ name }) => columns.findIndex((column) => column.name === name));
  const whole = places.length === columns.length && places.every((place, at) => place === at);
  const warnings: SyncFailure[] = [];
  const warn = (warning: SyncFailure) => warnings.push(warning);
  let cursor = cursorOf(columns, request, path, warn);
  const { raw } = reader;
  let unreadable = false;
  const records = async function* (): AsyncGenerator<Batch> {
    for await (const batch of reader.read()) {
      if (request.signal.aborted) throw request.signal.reason;
      request.waiting(`records of ${path}`);
      const rows = cursor ? batch.rows.filter(cursor.wants) : batch.rows;
      const { places: _, ...rest } = batch;
      unreadable ||= (batch.rejects?.length ?? 0) > 0;
      yield {
        ...(cursor ? rest : batch),
        rows: whole ? rows : rows.map((row) => places.map((at) => row[at] ?? null)),
      };
    }
  };
  return {
    schema,
    snapshot: true,
    changed: true,
    warnings,
    partitions: [{ id: "all", records: reader.records }],
    rawFormats: raw && whole && !cursor ? ["csv"] : [],
    ...(raw ? { copyRaw: async (_partition, { checks }) => raw(checks ?? []) } : {}),
    endState: () => cursor?.state() ?? null,
    count: async () => reader.records,
    // Asked for after the records.
    get keys() {
      return unreadable ? undefined : () => readKeys(reader, schema.primaryKey);
    },
    read: async function* (): AsyncGenerator<Batch> {
      yield* records();
      const { cursor: before } = request.state ?? {};
      if (!before || !cursor?.wentBack()) return;
      if (schema.primaryKey.length === 0)
        return void warn(cursorWentBackWarning(request.cursorField ?? "", path, before));
      // A file that took another's place has records before that one's cursor: those that the first reading left out.
      const [{ wants }, anew] = [cursor, cursorOf(columns, { ...request, state: null }, path, warn)];
      cursor = anew && { ...anew, wants: (row) => anew.wants(row) && !wants(row) };
      for await (const { rejects: _, ...batch } of records()) yield batch;
    },
    close: () => reader.close(),
  };
}

async function* readKeys(reader: FileReader, key: readonly string[]): AsyncGenerator<readonly Value[][]> {
  const places = key.map((name) => reader.columns.findIndex((column) => column.name === name));
  for await (const { rows } of reader.read()) yield rows.map((row) => places.map((at) => row[at] ?? null));
}
