// JSON Lines: one object a line. Numbers keep their digits both ways; a column's type is what all its values share.
import { isUtf8 } from "node:buffer";
import { MagicError } from "#contract/errors.ts";
import { isJson } from "#shared/json-text.ts";
import { Digits, jsonText, keepDigits, literalOf } from "../../engine/convert.ts";
import type { Batch } from "../../engine/source.ts";
import { withNanos } from "../../engine/temporal.ts";
import type { Column, ColumnType, Row, Value } from "../../engine/types.ts";
import { wholeLines } from "../postgres/copy-text.ts";
import { otherEncoding } from "./encoding.ts";
import { type FileFormat, type FileReader, LONGEST_RECORD } from "./format.ts";
import { memberCount, memberTexts } from "./json-members.ts";
import { openSnapshot, type Snapshot } from "./snapshot.ts";
import { textWriter } from "./text-writer.ts";
import { wholeEnd } from "./utf8.ts";

const MANY_NAMES = 10_000;
/** Columns without a value for each with one. */
const MOST_BLANK = 10;

export const jsonl: FileFormat = {
  open: openJsonl,
  create: (path, columns) => textWriter(path, "", lineOf(columns)),
};

function lineOf(columns: readonly Column[]) {
  return (row: Row) => {
    const object = objectOf(row, columns);
    return typeof object === "string" ? `${object}\n` : object;
  };
}

/** A record as a JSON object, or which of its values has no form there. */
export function objectOf(row: Row, columns: readonly Column[]): string | { column: string; reason: string } {
  const nothing = columns.findIndex(({ type }, at) => type.kind === "json" && row[at] === "null");
  if (nothing >= 0)
    return {
      column: columns[nothing]?.name ?? "",
      reason: "a JSON null cannot be told from no value in a JSON object",
    };
  const broken = columns.findIndex(
    ({ type, native }, at) => type.kind === "json" && !native && !holdsJson(row[at] ?? null),
  );
  if (broken >= 0) return { column: columns[broken]?.name ?? "", reason: "the value is no JSON" };
  const members = columns.map((column, at) => `${JSON.stringify(column.name)}:${jsonOf(row[at] ?? null, column.type)}`);
  return `{${members.join(",")}}`;
}

// PostgreSQL's do.
function holdsJson(value: Value): boolean {
  return typeof value === "string" ? isJson(value) : value === null;
}

/** A value as JSON text: numbers with all their digits, JSON as it is, timestamps in RFC 3339 where they can be, anything else as PostgreSQL's text. */
export function jsonOf(value: Value, type: ColumnType): string {
  if (value === null) return "null";
  if (typeof value !== "string") return `"\\\\x${Buffer.from(value).toString("hex")}"`;
  switch (type.kind) {
    case "int":
    case "decimal":
    case "float":
      return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value)
        ? value.replace(/^(-?)0+(?=\d)/, "$1")
        : JSON.stringify(value);
    case "bool":
      return value === "true" || value === "false" ? value : JSON.stringify(value);
    case "json":
      return value.includes("\n") ? value.replace(/(?<!\s)\s*\n\s*/g, " ") : value;
    case "time":
      return JSON.stringify(withNanos(value));
    case "timestamp":
      return JSON.stringify(
        type.zone
          ? withNanos(value).replace(/^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)\+00$/, "$1T$2Z")
          : withNanos(value).replace(/^(\d{4}-\d\d-\d\d) (?=\d)(?!.* BC$)/, "$1T"),
      );
    default:
      return JSON.stringify(value);
  }
}

async function openJsonl(path: string): Promise<FileReader> {
  const file = await openSnapshot(path);
  const { columns, records } = await survey(file).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  return {
    columns,
    records,
    read: () => readRows(file, columns),
    lines: (key) => readLines(file, key),
    close: file.close,
  };
}

async function survey(file: Snapshot): Promise<{ columns: readonly Column[]; records: number }> {
  const kinds = new Map<string, Kind>();
  let records = 0;
  let members = 0;
  for await (const { lines } of wholeLines(bytesOf(file), LONGEST_RECORD)) {
    if (lines.length === 0) records++;
    for (const line of lines) {
      if (line.trim() === "") continue;
      records++;
      const record = parseObject(line);
      if (typeof record === "string") continue;
      for (const [name, value] of Object.entries(record)) {
        members++;
        const kind = kindOf(value);
        if (kind === null) {
          if (!kinds.has(name)) kinds.set(name, "null");
        } else kinds.set(name, shared(kinds.get(name), kind));
      }
      // Each record is a row of all columns. Whoever has so many, and nearly none in a record, has ids in the place of names.
      if (kinds.size > MANY_NAMES && kinds.size * records > MOST_BLANK * members)
        throw new MagicError(
          "source_failed",
          `${file.path} has more than ${MANY_NAMES} names of members, and a record hardly any of them: its columns would be empty.`,
        );
    }
  }
  const columns = [...kinds].map(
    ([name, kind]): Column => ({
      ...{ name, type: typeOfKind(kind), nullable: true, untyped: true, fromJson: true },
      ...(kind === "null" ? { blank: true } : {}),
    }),
  );
  if (columns.length === 0 && records > 0) {
    const head = await file.slice(0, Math.min(file.size, 4096));
    if (head.includes(0) || !isUtf8(head.subarray(0, wholeEnd(head))))
      throw new MagicError("source_failed", `${file.path} is not UTF-8 but ${otherEncoding(head)}.`);
    throw new MagicError("source_failed", `${file.path}: none of its ${records} lines is a JSON object with a member.`);
  }
  return { columns, records };
}

// A last line without a line feed is a line too.
async function* bytesOf(file: Snapshot): AsyncGenerator<Buffer> {
  let last = 10;
  let first = true;
  for await (const chunk of file.stream(0, 1 << 18)) {
    last = chunk[chunk.length - 1] ?? last;
    yield first && chunk.subarray(0, 3).equals(BYTE_ORDER_MARK) ? chunk.subarray(3) : chunk;
    first = false;
  }
  if (last !== 10) yield Buffer.from("\n");
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

type Kind = "null" | "int" | "decimal" | "bool" | "string" | "json";

function kindOf(value: unknown): Kind | null {
  if (value === null) return null;
  if (value instanceof Digits) return /^-?\d{1,18}$/.test(value.text) ? "int" : "decimal";
  if (typeof value === "boolean") return "bool";
  return typeof value === "string" ? "string" : "json";
}

function shared(known: Kind | undefined, kind: Kind): Kind {
  if (known === undefined || known === "null" || known === kind) return kind;
  if ((known === "int" && kind === "decimal") || (known === "decimal" && kind === "int")) return "decimal";
  // Values of several kinds stay apart as JSON: "5" is not 5.
  return "json";
}

function typeOfKind(kind: Kind): ColumnType {
  switch (kind) {
    case "int":
      return { kind: "int", bits: 64 };
    case "decimal":
      return { kind: "decimal" };
    case "bool":
      return { kind: "bool" };
    case "json":
      return { kind: "json", binary: true };
    default:
      return { kind: "string" };
  }
}

function parseObject(line: string): Record<string, unknown> | string {
  try {
    const value = parsed(line);
    if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Digits)
      return "the line holds no JSON object";
    // Parsing keeps the last of them only.
    if (Object.keys(value).length !== memberCount(line)) return "a member's name stands twice";
    return value as Record<string, unknown>;
  } catch (error) {
    return (error as Error).message;
  }
}

// A reviver is called by way of the stack, which some thousand levels exhaust: what is nested so deep is told by its own text alone.
function parsed(line: string): unknown {
  try {
    return JSON.parse(line, keepDigits);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    if (Array.isArray(JSON.parse(line))) return [];
    const members = [...memberTexts(line)];
    return Object.fromEntries(
      members.map(([name, text]) => [name, /^[[{]/.test(text) ? {} : JSON.parse(text, keepDigits)]),
    );
  }
}

async function* readRows(file: Snapshot, columns: readonly Column[]): AsyncGenerator<Batch> {
  let place = 0;
  const exact = columns.some(({ type }) => type.kind === "json");
  for await (const { lines, bytes, whole } of wholeLines(bytesOf(file), LONGEST_RECORD)) {
    if (lines.length === 0) {
      const reason = `the line has ${bytes} bytes, of which ${LONGEST_RECORD} can be held`;
      yield { rows: [], bytes, places: [], rejects: [{ key: `row ${++place}`, column: null, reason }] };
      continue;
    }
    const broken = isUtf8(whole) ? null : brokenLines(whole);
    const rows: Row[] = [];
    const places: number[] = [];
    const rejects: { key: string; column: string | null; reason: string }[] = [];
    for (const [at, line] of lines.entries()) {
      if (line.trim() === "") continue;
      place++;
      const record = broken?.has(at) ? "the line is no valid UTF-8" : parseObject(line);
      if (typeof record === "string") {
        rejects.push({ key: `row ${place}`, column: null, reason: record });
        continue;
      }
      const written = exact ? memberTexts(line) : null;
      const row = columns.map(({ name, type }) =>
        // A column may be named as what every object inherits: "constructor".
        Object.hasOwn(record, name) ? fieldValue(record[name], type, written?.get(name)) : null,
      );
      const half = line.includes("\\u")
        ? row.findIndex((value) => typeof value === "string" && !value.isWellFormed())
        : -1;
      if (half >= 0)
        rejects.push({
          key: `row ${place}`,
          column: columns[half]?.name ?? null,
          reason: "the text holds half of a surrogate pair",
        });
      else {
        rows.push(row);
        places.push(place - 1);
      }
    }
    yield { rows, bytes, places, rejects };
  }
}

// A line that cannot be read stays as it is, and is nobody's.
async function* readLines(
  file: Snapshot,
  key: readonly Column[],
): AsyncGenerator<{ line: string; key: Value[] | null }[]> {
  const exact = key.some(({ type }) => type.kind === "json");
  for await (const { lines, whole } of wholeLines(bytesOf(file), LONGEST_RECORD)) {
    if (lines.length === 0)
      throw new MagicError(
        "destination_refused",
        `${file.path} holds a line of more than ${LONGEST_RECORD} bytes, which cannot be kept: mend it, or run a full refresh.`,
      );
    if (!isUtf8(whole))
      throw new MagicError(
        "destination_refused",
        `${file.path} holds a line that is no valid UTF-8 and would be changed: mend it, or run a full refresh.`,
      );
    yield lines
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const record = key.length > 0 ? parseObject(line) : "";
        if (typeof record === "string") return { line, key: null };
        const written = exact ? memberTexts(line) : null;
        return {
          line,
          key: key.map(({ name, type }) =>
            Object.hasOwn(record, name) ? fieldValue(record[name], type, written?.get(name)) : null,
          ),
        };
      });
  }
}

// The numbers of the lines that are no UTF-8: decoding has put something else there.
function brokenLines(whole: Buffer): Set<number> {
  const broken = new Set<number>();
  let start = 0;
  for (let line = 0; start <= whole.length; line++) {
    const feed = whole.indexOf(10, start);
    const end = feed < 0 ? whole.length : feed;
    if (!isUtf8(whole.subarray(start, end))) broken.add(line);
    start = end + 1;
  }
  return broken;
}

function fieldValue(value: unknown, type: ColumnType, written: string | undefined): Value {
  if (value === undefined || value === null) return null;
  if (type.kind === "json") return written ?? jsonText(value);
  if (value instanceof Digits) return value.text;
  if (typeof value === "string") return value;
  if (type.kind === "array" && Array.isArray(value)) return literalOf(value);
  return jsonText(value);
}
