// A page of JSON -> tuples of PostgreSQL's binary COPY, without objects and texts in between. It does what parsing, rowsOf and COPY's
// text form do together, for pages that are written as most are; any other page it leaves to them, wholly.
import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import type { TableSchema } from "../../../engine/types.ts";
import { type FieldEncoder, fieldEncoder, int16, int32, type Output, roomFor } from "../../postgres/binary-field.ts";
import type { HttpResponse } from "../http/client.ts";
import { parseJson } from "../http/decode.ts";
import { cellOf, EXTRA_COLUMN, extraCell } from "../rows.ts";
import { dpathOne } from "./dpath.ts";
import {
  ABSENT,
  blank,
  emptyMembers,
  FALSE,
  FRACTION,
  INTEGER,
  type Members,
  memberScanner,
  NULL,
  OTHER,
  STRING,
  TRUE,
  UNWANTED,
} from "./members.ts";
import type { TakenPage } from "./page-reader.ts";
import type { DataRecord } from "./records.ts";

/** A page whose records were found, but not yet looked into. */
export interface PackedPage extends TakenPage {
  /** One CopyData message, header and all; null: that is left to `records`. Asked for once, before another page is. */
  tuples(): Buffer | null;
  /** The tuples have been taken: their memory may be used again. */
  done(): void;
}

/** Finds the records of an answer's array at `path`; null: that is left to the general way. */
export type Pack = (response: Pick<HttpResponse, "body" | "url">, path: readonly string[]) => PackedPage | null;

/** The general way takes over for good after so many pages in a row that could not be packed. */
const MOST_MISSES = 3;
/** Type and length of a CopyData message. */
const FRAME = 5;
/** More digits may be rounded by the parser. */
const EXACT_DIGITS = 15;
/** Buffers kept for use again: about those that are under way at a time. */
const MOST_SPARE = 48;

/** PostgreSQL's types into which a column's text goes without anything else to look at. */
const goesInto: Readonly<Record<string, RegExp>> = {
  string: /^(text|character varying)\b/,
  int: /^(bigint|integer|smallint|numeric)\b/,
  decimal: /^numeric\b/,
  bool: /^boolean$/,
  date: /^date$/,
  timestamp: /^timestamp(\(\d\))? with time zone$/,
  json: /^jsonb?$/,
};

/** `types`: PostgreSQL's, by column of `schema`; null: rows of these are not packed. */
export function packerOf(schema: TableSchema, table: TableSchema, types: readonly string[]): Pack | null {
  const { columns } = schema;
  // A dot in a name may lead into the record.
  const simple = columns.every(
    ({ name, type }, at) => !name.includes(".") && goesInto[type.kind]?.test(types[at] ?? ""),
  );
  const encoders = types.map(fieldEncoder).filter((encode) => encode !== null);
  if (!simple || encoders.length !== columns.length) return null;
  const kinds = columns.map(({ name, type }) => (name === EXTRA_COLUMN ? "extra" : type.kind));
  const places = new Map(table.columns.map(({ name }) => [name, UNWANTED] as [string, number]));
  for (const [at, { name }] of columns.entries()) places.set(name, name === EXTRA_COLUMN ? UNWANTED : at);
  const width = columns.length;
  const scan = memberScanner(places, width, kinds.includes("extra") ? OTHER : UNWANTED);
  const out: Output = { bytes: Buffer.alloc(0), at: 0 };
  const scratch: Output = { bytes: Buffer.alloc(256), at: 0 };
  const spareMembers: Members[] = [];
  const spareBytes: Buffer[] = [];
  let misses = 0;
  /** Of the page at hand. */
  let members = emptyMembers();
  let room = 0;

  return ({ body, url }, path) => {
    const begin = misses < MOST_MISSES ? arrayAt(body, path) : -1;
    if (begin < 0 || body[blank(body, begin)] !== 0x7b) return null;
    if (!isUtf8(body)) return missed();
    const found = spareMembers.pop() ?? emptyMembers();
    let at = blank(body, begin);
    const first = at;
    for (let count = 1, firstEnd = 0; body[at] === 0x7b; count++) {
      const last = at;
      const end = scan(body, at, found, count - 1);
      if (end < 0) break;
      firstEnd ||= end;
      at = blank(body, end);
      if (body[at] === 0x2c) at = blank(body, at + 1);
      else if (body[at] === 0x5d && isArrayAt(body, path, begin, at)) {
        const ends = [valueAt(body, first, firstEnd), valueAt(body, last, end)] as const;
        if (!ends[0] || !ends[1]) break;
        return {
          count,
          first: ends[0],
          last: ends[1],
          records: () => dpathOne(parseJson(body.toString("utf8"), url), path) as DataRecord[],
          ...packing(body, found, count),
        };
      } else break;
    }
    return missed();
  };

  function missed(): null {
    misses++;
    return null;
  }

  function packing(body: Buffer, found: Members, count: number): Pick<PackedPage, "tuples" | "done"> {
    let bytes: Buffer | undefined;
    return {
      tuples() {
        const packed = packPage(body, found, count);
        spareMembers.push(found);
        if (!packed) return missed();
        misses = 0;
        bytes = out.bytes;
        return packed;
      },
      done() {
        if (bytes && spareBytes.length < MOST_SPARE) spareBytes.push(bytes);
        bytes = undefined;
      },
    };
  }

  function packPage(body: Buffer, found: Members, count: number): Buffer | null {
    members = found;
    room = body.length + count * (2 + width * roomFor(4));
    out.bytes = spareBytes.pop() ?? Buffer.alloc(0);
    out.at = 0;
    makeRoom(out, FRAME + room);
    out.at = FRAME;
    for (let row = 0; row < count; row++) {
      int16(out.bytes, out.at, width);
      out.at += 2;
      for (let column = 0; column < width; column++) if (!packField(body, row, column)) return null;
    }
    out.bytes[0] = 0x64;
    int32(out.bytes, 1, out.at - 1);
    return out.bytes.subarray(0, out.at);
  }

  function packField(body: Buffer, row: number, column: number): boolean {
    const place = out.at;
    const member = row * width + column;
    const encode = encoders[column] as FieldEncoder;
    const found = members.kind[member] as number;
    if (kinds[column] === "extra") {
      const others = members.others.get(row);
      return others ? packText(column, textOf(body, others)) : absent();
    }
    if (found === ABSENT || found === NULL) return absent();
    const start = members.from[member] as number;
    const end = members.to[member] as number;
    out.at += 4;
    if (!packAsWritten(body, kinds[column] as string, found, start, end, encode)) {
      out.at = place;
      return packText(column, body.toString("utf8", start, end));
    }
    int32(out.bytes, place, out.at - place - 4);
    return true;
  }

  function absent(): true {
    int32(out.bytes, out.at, -1);
    out.at += 4;
    return true;
  }

  // Values whose text is the column's own already.
  function packAsWritten(
    body: Buffer,
    type: string,
    found: number,
    start: number,
    end: number,
    encode: FieldEncoder,
  ): boolean {
    if (found === STRING)
      return (type === "string" || type === "timestamp" || type === "date") && encode(body, start + 1, end - 1, out);
    if (found === INTEGER)
      return (type === "int" || type === "decimal") && end - start <= EXACT_DIGITS && encode(body, start, end, out);
    if (found === FRACTION) {
      if (type !== "decimal" || end - start > EXACT_DIGITS) return false;
      // A number that was parsed has no zeros at its end.
      let to = end;
      while (body[to - 1] === 48) to--;
      return encode(body, start, body[to - 1] === 0x2e ? to - 1 : to, out);
    }
    return (found === TRUE || found === FALSE) && type === "bool" && encode(body, start, end, out);
  }

  // Any value by way of its row's text, as rowsOf makes it; false also where that rejects the record.
  function packText(column: number, json: string): boolean {
    const { type } = schema.columns[column] as TableSchema["columns"][number];
    let cell: ReturnType<typeof cellOf>;
    try {
      const value = parseJson(json, "");
      cell = kinds[column] === "extra" ? extraCell(value) : cellOf(value, type);
    } catch {
      return false;
    }
    if (cell === null) return absent();
    if (typeof cell !== "string") return false;
    scratch.at = 0;
    makeRoom(scratch, cell.length * 3);
    const length = scratch.bytes.write(cell, 0, "utf8");
    makeRoom(out, room + roomFor(length));
    const place = out.at;
    out.at += 4;
    if (!(encoders[column] as FieldEncoder)(scratch.bytes, 0, length, out)) return false;
    int32(out.bytes, place, out.at - place - 4);
    return true;
  }
}

// A record; null: it is no JSON after all.
function valueAt(body: Buffer, start: number, end: number): DataRecord | null {
  try {
    return parseJson(body.toString("utf8", start, end), "") as DataRecord;
  } catch {
    return null;
  }
}

// The members at `places` as an object.
function textOf(body: Buffer, places: readonly number[]): string {
  const slices: string[] = [];
  for (let at = 0; at < places.length; at += 2) slices.push(body.toString("utf8", places[at], places[at + 1]));
  return `{${slices.join(",")}}`;
}

function makeRoom(out: Output, bytes: number): void {
  if (out.at + bytes <= out.bytes.length) return;
  const larger = Buffer.allocUnsafe(Math.max(out.bytes.length * 2, out.at + bytes));
  larger.set(out.bytes.subarray(0, out.at));
  out.bytes = larger;
}

// Behind the bracket of the array that is probably the one at `path`, or -1.
function arrayAt(body: Buffer, path: readonly string[]): number {
  let at = 0;
  for (const name of path) {
    const key = JSON.stringify(name);
    const found = body.indexOf(key, at);
    if (found < 0) return -1;
    at = blank(body, found + Buffer.byteLength(key));
    if (body[at] !== 0x3a) return -1;
    at++;
  }
  at = blank(body, at);
  return body[at] === 0x5b ? at + 1 : -1;
}

// It is: with a mark in place of the records the rest is JSON that has the mark at `path`.
function isArrayAt(body: Buffer, path: readonly string[], begin: number, end: number): boolean {
  try {
    const around: unknown = JSON.parse(`${body.toString("utf8", 0, begin)}"${MARK}"${body.toString("utf8", end)}`);
    const found = dpathOne(around, path);
    return Array.isArray(found) && found[0] === MARK;
  } catch {
    return false;
  }
}

const MARK = randomUUID();
