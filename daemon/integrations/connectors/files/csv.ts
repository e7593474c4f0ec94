// CSV (RFC 4180) with a header: an unquoted empty field is null, a quoted one an empty string, as PostgreSQL writes and reads it.
import { isUtf8 } from "node:buffer";
import { Readable } from "node:stream";
import { MagicError } from "#contract/errors.ts";
import type { Batch, FieldCheck, RawStream } from "../../engine/source.ts";
import { withNanos } from "../../engine/temporal.ts";
import type { Column, Row, Value } from "../../engine/types.ts";
import { CsvInspector } from "./csv-inspect.ts";
import { otherEncoding } from "./encoding.ts";
import { type FileFormat, type FileReader, LONGEST_RECORD } from "./format.ts";
import { openSnapshot, type Snapshot } from "./snapshot.ts";
import { textWriter } from "./text-writer.ts";
import { watchUtf8 } from "./utf8.ts";

const BATCH_ROWS = 1000;
const HEADER_LIMIT = 1 << 20;
const DELIMITERS = ",\t;|";

export const csv: FileFormat = {
  open: openCsv,
  create: (path, columns, named) => {
    const delimiter = isTsv(named) ? "\t" : ",";
    const special = isTsv(named) ? /["\t\r\n]/ : /[",\r\n]/;
    const fields = columns.map(({ type: { kind } }) =>
      kind === "timestamp" || kind === "time"
        ? (value: Value) => fieldOf(typeof value === "string" ? withNanos(value) : value, special)
        : (value: Value) => fieldOf(value, special),
    );
    return textWriter(
      path,
      // Without a column it holds nothing, not an empty line that nobody could read as a header.
      columns.length === 0 ? "" : `${columns.map(({ name }) => quoted(name)).join(delimiter)}\n`,
      (row) => `${row.map((value, at) => fields[at]?.(value)).join(delimiter)}\n`,
    );
  },
};

const isTsv = (path: string) => /\.tsv$/i.test(path);

function fieldOf(value: Value, special: RegExp): string {
  if (value === null) return "";
  if (typeof value !== "string") return `\\x${Buffer.from(value).toString("hex")}`;
  return value === "" || value === "\\." || special.test(value) ? quoted(value) : value;
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

async function openCsv(path: string): Promise<FileReader> {
  const file = await openSnapshot(path);
  const { names, delimiter, ended, start } = await readHeader(file).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  const columns = names.map(
    (name): Column => ({ name, type: { kind: "string" }, nullable: true, native: "text", untyped: true }),
  );
  return {
    columns,
    records: null,
    read: () => readRows(file, columns.length, delimiter, ended),
    ...(delimiter === "," && ended.length > 1 ? { raw: (checks) => rawCsv(file, start, checks) } : {}),
    close: file.close,
  };
}

// The file as it is, its records counted and looked at on the way.
function rawCsv(file: Snapshot, start: number, checks: readonly FieldCheck[]): RawStream {
  const inspector = new CsvInspector(checks);
  const stream = Readable.from(
    (async function* () {
      for await (const chunk of file.stream(start, 1 << 20)) {
        inspector.take(chunk);
        yield chunk;
      }
      inspector.end();
    })(),
    { objectMode: false, highWaterMark: 1 << 20 },
  );
  return { format: "csv", stream, count: async () => inspector.records, passed: () => inspector.records };
}

interface Header {
  readonly names: string[];
  readonly delimiter: string;
  /** What ends a record: line feeds with or without carriage returns, or carriage returns alone. */
  readonly ended: string[];
  /** The offset of the first record. */
  readonly start: number;
}

async function readHeader(file: Snapshot): Promise<Header> {
  const { parse } = await import("csv-parse/sync");
  const { path } = file;
  let head: Buffer = Buffer.alloc(0);
  while (head.length < Math.min(file.size, HEADER_LIMIT) && endOfRecord(head, DELIMITERS) < 0)
    head = await file.slice(0, Math.min(file.size, HEADER_LIMIT, Math.max(65_536, head.length * 4)));
  const known = endOfRecord(head, DELIMITERS);
  const delimiter = delimiterOf(head.toString("latin1", 0, known < 0 ? head.length : known), isTsv(path));
  const end = endOfRecord(head, delimiter);
  if (end < 0 && head.length >= HEADER_LIMIT)
    throw new MagicError("source_failed", `${path}: the first line is longer than ${HEADER_LIMIT} bytes.`);
  const bytes = head.subarray(bomOf(head), end < 0 ? head.length : end);
  if (!isUtf8(bytes) || bytes.includes(0))
    throw new MagicError("source_failed", `${path} is not UTF-8 in its header line but ${otherEncoding(head)}.`);
  const line = bytes.toString("utf8").replace(/\r*\n?$/, "");
  if (line === "") throw new MagicError("source_failed", `${path} is empty: a CSV file needs a header line.`);
  const names = namesIn(() => parse(line, { delimiter, relax_quotes: true }) as string[][], path);
  const seen = new Set<string>();
  for (const [at, name] of names.entries()) {
    if (name === "") names[at] = `column_${at + 1}`;
    if (seen.has(names[at] ?? ""))
      throw new MagicError("source_failed", `${path}: two columns are named ${JSON.stringify(names[at])}.`);
    seen.add(names[at] ?? "");
  }
  const ended = end > 0 && head[end - 1] === 13 ? ["\r"] : ["\r\r\n", "\r\n", "\n"];
  return { names, delimiter, ended, start: end < 0 ? head.length : end };
}

function namesIn(read: () => string[][], path: string): string[] {
  try {
    return read()[0] ?? [];
  } catch (error) {
    throw new MagicError("source_failed", `${path}: the header line cannot be read: ${(error as Error).message}.`);
  }
}

// The offset behind the first record's line feed, or carriage return where no line feed follows; -1: it goes on. `delimiters`: those that
// it may have, while nobody knows.
function endOfRecord(head: Buffer, delimiters: string): number {
  const bom = bomOf(head);
  const end = endOf(head.subarray(bom), Buffer.from(delimiters));
  return end < 0 ? end : end + bom;
}

const bomOf = (head: Buffer) => (head.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? 3 : 0);

function endOf(bytes: Buffer, delimiters: Buffer): number {
  let inside = false;
  // The last quote that ended a field, if no second one made it a quote of the field's text.
  let closed = -2;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 34) {
      // In the middle of a field that began without one it is a character like others.
      const opens = at === 0 || at - 1 === closed || delimiters.includes(bytes[at - 1] as number);
      if (inside) closed = at;
      inside = !inside && opens;
    } else if (inside) continue;
    else if (bytes[at] === 10) return at + 1;
    else if (bytes[at] === 13) {
      // A file that was translated twice has two before each line feed.
      let after = at;
      while (bytes[after] === 13) after++;
      if (after < bytes.length && bytes[after] !== 10) return at + 1;
      at = after - 1;
    }
  }
  return -1;
}

function delimiterOf(header: string, tsv: boolean): string {
  const bare = header.replace(/"(?:[^"]|"")*"/g, "");
  if (tsv && (bare.includes("\t") || !/[,;|]/.test(bare))) return "\t";
  const counts = [...DELIMITERS].map((one) => ({ one, count: bare.split(one).length - 1 }));
  const best = counts.reduce((a, b) => (b.count > a.count ? b : a));
  return best.count > 0 ? best.one : ",";
}

async function* readRows(snapshot: Snapshot, width: number, delimiter: string, ended: string[]): AsyncGenerator<Batch> {
  const { parse } = await import("csv-parse");
  const rejects: { key: string; column: string | null; reason: string }[] = [];
  let place = 0;
  const parser = parse({
    bom: true,
    delimiter,
    record_delimiter: ended,
    from: 2,
    relax_column_count: true,
    // A quote in the middle of a field is a quote.
    relax_quotes: true,
    skip_records_with_error: true,
    max_record_size: LONGEST_RECORD,
    on_skip: (error) => {
      // A quote that nobody closes makes one record of all that follows.
      if (error?.code === "CSV_MAX_RECORD_SIZE")
        throw new MagicError(
          "source_failed",
          `${snapshot.path}: record ${place + 1} is longer than ${LONGEST_RECORD} bytes, or begins a quoted field that does not end.`,
        );
      rejects.push({ key: `row ${++place}`, column: null, reason: error?.message ?? "the record cannot be parsed" });
      return undefined;
    },
    cast: (value, { quoting }) => (value === "" && !quoting ? null : value),
  });
  const file = Readable.from(snapshot.stream(0, 1 << 18), { objectMode: false });
  const utf8 = watchUtf8();
  file.on("error", (error) => parser.destroy(error));
  // Before the parser sees the chunk: its records are judged by what is known then.
  file.on("data", (chunk) => utf8.take(chunk as Buffer));
  file.pipe(parser);
  let rows: Row[] = [];
  let places: number[] = [];
  let bytes = 0;
  const take = (): Batch => {
    const batch = { rows, bytes, places, rejects: rejects.splice(0) };
    rows = [];
    places = [];
    bytes = 0;
    return batch;
  };
  for await (const record of parser as AsyncIterable<Row>) {
    place++;
    const reason =
      record.length !== width
        ? `${record.length} fields where the header has ${width}`
        : utf8.broken
          ? misread(record)
          : null;
    // A line with nothing on it is no record where there are several columns.
    if (record.length === 1 && record[0] === null && width > 1) continue;
    if (reason) rejects.push({ key: `row ${place}`, column: null, reason });
    else {
      rows.push(record);
      places.push(place - 1);
      for (const value of record) bytes += (value?.length ?? 0) + 1;
    }
    if (rows.length + rejects.length >= BATCH_ROWS || bytes > 4 << 20) yield take();
  }
  if (rows.length > 0 || rejects.length > 0) yield take();
}

// Bytes that are not UTF-8 were replaced while decoding; in such a file a replacement character cannot be told from them.
function misread(record: Row): string | null {
  return record.some((value) => typeof value === "string" && value.includes("\ufffd")) ? "not valid UTF-8" : null;
}
