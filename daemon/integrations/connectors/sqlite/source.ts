// A SQLite file as a source: one read transaction, integers as BigInt, nothing rounded.
import { existsSync } from "node:fs";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import type { Reject } from "#contract/sync.ts";
import { discoveredObject } from "../../engine/discovered.ts";
import { pickColumns } from "../../engine/pick.ts";
import type { Batch, ReadRequest, Source, SourceStream } from "../../engine/source.ts";
import type { Row, Value } from "../../engine/types.ts";
import { translating } from "../translating.ts";
import { describeTable, listTables, quote, schemaOf } from "./catalog.ts";
import { isBusy, sqliteError } from "./errors.ts";
import { whenFree } from "./free.ts";
import { planRead } from "./scope.ts";
import { readValue, type Stored } from "./types.ts";

const BATCH_ROWS = 2000;

/** Milliseconds that whoever asks what is in a file is kept waiting for its writer. */
const PATIENCE_MS = 2000;

export function sqliteSource(path: string): Source {
  let db: DatabaseSync | undefined;
  const open = async (timeout: number) => {
    if (!existsSync(path)) throw new MagicError("object_not_found", `There is no file ${path}.`);
    const { DatabaseSync } = await import("node:sqlite");
    if (existsSync(`${path}-journal`)) rollBack(() => new DatabaseSync(path));
    db = new DatabaseSync(path, { readOnly: true, timeout });
    return db;
  };
  const guard = translating((error) => sqliteError(error, "source", path));
  return {
    check: () =>
      guard(async () => {
        const opened = await open(0);
        try {
          look(opened);
        } catch (error) {
          // A writer with much to write keeps the file for itself: nothing is wrong with it.
          if (!isBusy(error)) throw error;
        }
      }),
    discover: () =>
      guard(async () => {
        const opened = await open(PATIENCE_MS);
        return listTables(opened).map((table) => discoveredObject(table.name, schemaOf(table), null));
      }),
    open: (request) =>
      guard(async () => {
        const opened = await open(0);
        opened.exec("BEGIN");
        await whenFree(() => look(opened), request, "a writer of the file to end");
        return openStream(opened, request, path);
      }),
    close: async () => {
      if (db?.isOpen) db.close();
    },
  };
}

function look(opened: DatabaseSync): void {
  opened.prepare("SELECT count(*) FROM sqlite_schema").get();
}

/** Undoes what a killed writer left half written, as no read-only connection can; a living one's is left to it. https://sqlite.org/lockingv3.html */
function rollBack(open: () => DatabaseSync): void {
  let opened: DatabaseSync | undefined;
  try {
    opened = open();
    look(opened);
  } catch {
    // The connection that reads says what is wrong.
  } finally {
    opened?.close();
  }
}

async function openStream(db: DatabaseSync, request: ReadRequest, path: string): Promise<SourceStream> {
  const table = describeTable(db, request.object.name);
  if (!table) throw new MagicError("object_not_found", `${path} has no table ${request.object.name}.`);
  const schema = pickColumns(schemaOf(table), request, table.name);
  const from = quote(table.name);
  const scope = await planRead(db, table, schema.primaryKey.length > 0, request);
  const list = schema.columns.map(({ name }) => quote(name)).join(", ");
  const total = Number((db.prepare(`SELECT count(*) AS n FROM ${from}`).get() as { n: number }).n);
  const read = async function* (): AsyncGenerator<Batch> {
    const statement = db.prepare(`SELECT ${list} FROM ${from}${scope.condition}${scope.order}`);
    const blobs = schema.columns.map(({ name }) => `CAST(${quote(name)} AS BLOB)`).join(", ");
    const check = exactText(
      () => db.prepare(`SELECT ${blobs} FROM ${from}${scope.condition}${scope.order}`),
      scope.parameters,
      encoderOf(db),
    );
    let place = 0;
    for (const { rows, rejects, bytes } of batches(statement, scope.parameters, schema, () => place++, check)) {
      yield { rows, rejects, bytes };
      if (request.signal.aborted) throw request.signal.reason;
      request.waiting(`rows of ${table.name}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return {
    schema,
    snapshot: true,
    changed: true,
    warnings: scope.warnings,
    partitions: [{ id: "all", records: total }],
    rawFormats: [],
    endState: () => scope.endState,
    count: async () => total,
    keys: () => explained(readKeys(db, from, schema.primaryKey, schema, request), path),
    read: () => explained(read(), path),
    close: async () => {
      if (db.isOpen) db.close();
    },
  };
}

// A file may be damaged, or written over, anywhere.
async function* explained<T>(rows: AsyncIterable<T>, path: string): AsyncGenerator<T> {
  try {
    yield* rows;
  } catch (error) {
    throw sqliteError(error, "source", path);
  }
}

type Statement = ReturnType<DatabaseSync["prepare"]>;

/** Whether a text that holds a replacement character stands so in the file, or was made of bytes that are no UTF-8. */
type ExactText = (text: string, row: number, column: number) => boolean;

// The same rows once more, as bytes, read only as far as somebody asks.
function exactText(
  prepare: () => Statement,
  parameters: readonly SQLInputValue[],
  bytesOf: (text: string) => Buffer,
): ExactText {
  let rows: Iterator<Stored[]> | undefined;
  let at = -1;
  let bytes: Stored[] = [];
  return (text, row, column) => {
    if (!rows) {
      const statement = prepare();
      statement.setReturnArrays(true);
      rows = statement.iterate(...parameters) as unknown as Iterator<Stored[]>;
    }
    for (; at < row; at++) bytes = rows.next().value ?? [];
    const stored = bytes[column];
    return stored instanceof Uint8Array && bytesOf(text).equals(stored);
  };
}

// As a file's own encoding has it: CAST leaves the bytes as they are.
function encoderOf(db: DatabaseSync): (text: string) => Buffer {
  const { encoding } = db.prepare("PRAGMA encoding").get() as { encoding: string };
  if (encoding === "UTF-8") return (text) => Buffer.from(text, "utf8");
  return (text) => (encoding === "UTF-16be" ? Buffer.from(text, "utf16le").swap16() : Buffer.from(text, "utf16le"));
}

function* batches(
  statement: Statement,
  parameters: readonly SQLInputValue[],
  schema: SourceStream["schema"],
  place: () => number,
  exact: ExactText = () => true,
): Generator<{ rows: Row[]; rejects: Reject[]; bytes: number }> {
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  let rows: Row[] = [];
  let rejects: Reject[] = [];
  let bytes = 0;
  const keys = schema.primaryKey.map((name) => schema.columns.findIndex((column) => column.name === name));
  for (const stored of statement.iterate(...parameters) as unknown as Iterable<Stored[]>) {
    const at = place();
    const row: Row = [];
    let bad: Reject | undefined;
    for (const [i, column] of schema.columns.entries()) {
      const value = stored[i] ?? null;
      const broken = typeof value === "string" && value.includes("\ufffd") && !exact(value, at, i);
      const read = broken ? { reason: "the text is no valid UTF-8" } : readValue(value, column.type);
      if ("value" in read) {
        row.push(read.value);
        bytes += read.value?.length ?? 1;
      } else {
        const key = keys.length > 0 ? keys.map((k) => String(stored[k])).join(",") : `row ${at + 1}`;
        bad = { key, column: column.name, reason: read.reason };
        break;
      }
    }
    if (bad) rejects.push(bad);
    else rows.push(row);
    if (rows.length + rejects.length >= BATCH_ROWS || bytes > 4 << 20) {
      yield { rows, rejects, bytes };
      rows = [];
      rejects = [];
      bytes = 0;
    }
  }
  if (rows.length > 0 || rejects.length > 0) yield { rows, rejects, bytes };
}

async function* readKeys(
  db: DatabaseSync,
  from: string,
  key: readonly string[],
  schema: SourceStream["schema"],
  request: ReadRequest,
): AsyncGenerator<readonly Value[][]> {
  const columns = key.flatMap((name) => schema.columns.find((column) => column.name === name) ?? []);
  const statement = db.prepare(`SELECT ${key.map(quote).join(", ")} FROM ${from}`);
  for (const { rows } of batches(statement, [], { columns, primaryKey: [] }, () => 0)) {
    yield rows;
    if (request.signal.aborted) throw request.signal.reason;
  }
}
