// PostgreSQL's COPY text format, both ways: lines of tab-separated values, backslash escapes, \N for null.
import type { Column, Row, Value } from "../../engine/types.ts";

/** Reads one line (without its line feed) into values in the engine's form. */
export function lineReader(columns: readonly Column[]): (line: string) => Row {
  const kinds = columns.map((column) => column.type.kind);
  const bytes = kinds.map((kind) => kind === "bytes");
  const bools = kinds.map((kind) => kind === "bool");
  const special = kinds.some((kind) => kind === "bytes" || kind === "bool");
  if (columns.length === 0) return () => [];
  return (line) => {
    const row: Row = line.split("\t");
    if (!special && !line.includes("\\")) return row;
    for (let at = 0; at < row.length; at++) {
      const text = row[at] as string;
      if (text === "\\N") row[at] = null;
      else if (bytes[at]) row[at] = Buffer.from(text.slice(3), "hex");
      else if (bools[at]) row[at] = text === "t" ? "true" : "false";
      else if (text.includes("\\")) row[at] = unescaped(text);
    }
    return row;
  };
}

const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter);
}

/** One value as a field of the text format. */
function field(value: Value): string {
  if (value === null) return "\\N";
  if (typeof value !== "string")
    return `\\\\x${Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex")}`;
  return needsEscape.test(value) ? value.replace(mustEscape, (letter) => escapeOf[letter] ?? letter) : value;
}

const needsEscape = /[\\\n\r\t]/;
const mustEscape = /[\\\n\r\t]/g;
const escapeOf: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A row as a line with its line feed. */
export function lineOf(row: readonly Value[]): string {
  let line = "";
  for (let at = 0; at < row.length; at++) line += at === 0 ? field(row[at] ?? null) : `\t${field(row[at] ?? null)}`;
  return `${line}\n`;
}

/** Cuts a stream of lines into groups of whole ones, as text. A line of more than `longest` bytes comes alone, without its text. */
export async function* wholeLines(
  stream: AsyncIterable<Buffer>,
  longest = Number.POSITIVE_INFINITY,
): AsyncGenerator<{ lines: string[]; bytes: number; whole: Buffer }> {
  let pending: Buffer[] = [];
  let held = 0;
  // Bytes of a line that is too long already: nobody holds them.
  let dropped = 0;
  for await (const chunk of stream) {
    const last = chunk.lastIndexOf(10);
    if (last < 0) {
      pending.push(chunk);
      held += chunk.length;
      if (held <= longest) continue;
      dropped += held;
      pending = [];
      held = 0;
      continue;
    }
    let start = 0;
    if (dropped > 0) {
      start = chunk.indexOf(10) + 1;
      yield { lines: [], bytes: dropped + held + start, whole: Buffer.alloc(0) };
      dropped = 0;
      pending = [];
    }
    if (start <= last) {
      pending.push(chunk.subarray(start, last));
      const whole = pending.length === 1 ? (pending[0] as Buffer) : Buffer.concat(pending);
      if (whole.length > longest) yield* byLine(whole, longest);
      else yield { lines: whole.toString("utf8").split("\n"), bytes: whole.length + 1, whole };
    }
    pending = last + 1 < chunk.length ? [chunk.subarray(last + 1)] : [];
    held = chunk.length - last - 1;
  }
}

function* byLine(lines: Buffer, longest: number) {
  for (let at = 0; at <= lines.length; ) {
    const feed = lines.indexOf(10, at);
    const whole = lines.subarray(at, feed < 0 ? lines.length : feed);
    yield { lines: whole.length > longest ? [] : [whole.toString("utf8")], bytes: whole.length + 1, whole };
    at += whole.length + 1;
  }
}
