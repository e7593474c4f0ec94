// Values in the engine's text form, as bytes -> PostgreSQL's binary form, as its receive functions read it (`numeric_recv` and its kin).
// What is written otherwise than as expected is not guessed at: the encoder says no, and the value goes as text.
import { daysFromCivil, daysInMonth } from "../../engine/temporal.ts";

/** A growing buffer; encoders write at `at`, and have room for what `roomFor` said. */
export interface Output {
  bytes: Buffer;
  at: number;
}

/** Writes the value, without its length, and answers true; false: it stays for the text form, and `at` where it was. */
export type FieldEncoder = (from: Uint8Array, start: number, end: number, out: Output) => boolean;

/** Bytes that an encoder may write for a text of `length` bytes. */
export const roomFor = (length: number): number => length + 16;

/** The encoder for a type by its `format_type` name; null: there is none. */
export function fieldEncoder(type: string): FieldEncoder | null {
  switch (type.replace(/\(.*?\)/, "")) {
    case "text":
    case "character varying":
    case "json":
      return bytes;
    case "jsonb":
      return jsonb;
    case "boolean":
      return bool;
    case "smallint":
      return integer(2, 32_767);
    case "integer":
      return integer(4, 2_147_483_647);
    case "bigint":
      return integer(8, Number.MAX_SAFE_INTEGER);
    case "numeric":
      return numeric;
    case "date":
      return date;
    case "timestamp with time zone":
      return timestamp;
    default:
      return null;
  }
}

const MINUS = 45;
const POINT = 46;
const ZERO = 48;
/** Digits behind the point that a numeric can have. */
const MOST_SHOWN = 16_383;

const bytes: FieldEncoder = (from, start, end, out) => {
  const to = out.bytes;
  let at = out.at;
  // A call into copying code costs more than some dozen bytes one by one.
  if (end - start > 100) to.set(from.subarray(start, end), at);
  else for (let i = start; i < end; i++) to[at++] = from[i] as number;
  out.at += end - start;
  return true;
};

const jsonb: FieldEncoder = (from, start, end, out) => {
  // Its version.
  out.bytes[out.at++] = 1;
  return bytes(from, start, end, out);
};

const bool: FieldEncoder = (from, start, _end, out) => {
  out.bytes[out.at++] = from[start] === 0x74 ? 1 : 0;
  return true;
};

function integer(size: 2 | 4 | 8, most: number): FieldEncoder {
  return (from, start, end, out) => {
    const negative = from[start] === MINUS;
    const first = negative ? start + 1 : start;
    if (first === end) return false;
    if (end - first > 15) return size === 8 && wide(from, start, end, out);
    let value = 0;
    for (let i = first; i < end; i++) {
      const digit = (from[i] as number) - ZERO;
      if (!(digit >= 0 && digit <= 9)) return false;
      value = value * 10 + digit;
    }
    if (value > most) return false;
    if (negative) value = -value;
    const { bytes: to, at } = out;
    if (size === 8) int64(to, at, Math.floor(value / 0x1_0000_0000), value);
    else if (size === 4) int32(to, at, value);
    else int16(to, at, value);
    out.at += size;
    return true;
  };
}

// More digits than a number is sure to hold.
function wide(from: Uint8Array, start: number, end: number, out: Output): boolean {
  const text = Buffer.from(from.buffer, from.byteOffset + start, end - start).toString("latin1");
  if (!/^-?\d{1,19}$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) return false;
  out.at = out.bytes.writeBigInt64BE(BigInt(text), out.at);
  return true;
}

// Digits in groups of four around the point: count, weight of the first group, sign, digits shown behind the point, groups.
const numeric: FieldEncoder = (from, start, end, out) => {
  const negative = from[start] === MINUS;
  let first = negative ? start + 1 : start;
  let point = first;
  while (point < end && from[point] !== POINT) point++;
  const shown = point < end ? end - point - 1 : 0;
  if (point === first || (point < end && shown === 0) || shown > MOST_SHOWN) return false;
  while (first < point && from[first] === ZERO) first++;
  const to = out.bytes;
  const groups = out.at + 8;
  let at = groups;
  let weight = Math.ceil((point - first) / 4) - 1;
  let last = groups;
  // The first group may be short in front, the last one behind.
  for (let i = first, next = point - (Math.ceil((point - first) / 4) - 1) * 4; i < point; next += 4) {
    let group = 0;
    for (; i < next; i++) {
      const digit = (from[i] as number) - ZERO;
      if (!(digit >= 0 && digit <= 9)) return false;
      group = group * 10 + digit;
    }
    int16(to, at, group);
    at += 2;
    if (group !== 0) last = at;
  }
  for (let i = point + 1; i < end; ) {
    let group = 0;
    for (let place = 0; place < 4; place++, i++) {
      const digit = i < end ? (from[i] as number) - ZERO : 0;
      if (!(digit >= 0 && digit <= 9)) return false;
      group = group * 10 + digit;
    }
    // Zeros in front have no group.
    if (group === 0 && at === groups) weight--;
    else {
      int16(to, at, group);
      at += 2;
      if (group !== 0) last = at;
    }
  }
  const zero = last === groups;
  int16(to, out.at, (last - groups) / 2);
  int16(to, out.at + 2, zero ? 0 : weight);
  int16(to, out.at + 4, negative && !zero ? 0x4000 : 0);
  int16(to, out.at + 6, shown);
  out.at = last;
  return true;
};

/** Days from 1970 to PostgreSQL's epoch, 2000. */
const EPOCH = 10_957;

const date: FieldEncoder = (from, start, end, out) => {
  const days = end - start === 10 ? daysAt(from, start) : Number.NaN;
  if (Number.isNaN(days)) return false;
  int32(out.bytes, out.at, days - EPOCH);
  out.at += 4;
  return true;
};

// `YYYY-MM-DD HH:MM:SS[.ffffff]+00`, or as APIs write it, with T and Z.
const timestamp: FieldEncoder = (from, start, end, out) => {
  const seconds = start + 19;
  let zone = end;
  if (from[end - 1] === 0x5a) zone = end - 1;
  else if (from[end - 3] === 0x2b && from[end - 2] === ZERO && from[end - 1] === ZERO) zone = end - 3;
  else return false;
  if (zone < seconds || zone > seconds + 7 || zone === seconds + 1) return false;
  const days = daysAt(from, start);
  const middle = from[start + 10];
  const hour = two(from, start + 11);
  const minute = two(from, start + 14);
  const second = two(from, start + 17);
  const separated = (middle === 0x54 || middle === 0x20) && from[start + 13] === 0x3a && from[start + 16] === 0x3a;
  if (!separated || !(hour < 24 && minute < 60 && second < 60) || Number.isNaN(days)) return false;
  let micros = 0;
  if (zone > seconds) {
    if (from[seconds] !== POINT) return false;
    for (let i = 1; i <= 6; i++) {
      const digit = seconds + i < zone ? (from[seconds + i] as number) - ZERO : 0;
      if (!(digit >= 0 && digit <= 9)) return false;
      micros = micros * 10 + digit;
    }
  }
  // Microseconds pass 2^53: they are made in parts of sixteen bits.
  const total = (days - EPOCH) * 86_400 + hour * 3600 + minute * 60 + second;
  const high = Math.floor(total / 65_536);
  const low = (total - high * 65_536) * 1e6 + micros;
  const carried = Math.floor(low / 65_536);
  const upper = high * 1e6 + carried;
  const top = Math.floor(upper / 65_536);
  int64(out.bytes, out.at, top, (upper - top * 65_536) * 65_536 + (low - carried * 65_536));
  out.at += 8;
  return true;
};

// Days since 1970 of `YYYY-MM-DD`, a day that there is; NaN otherwise.
function daysAt(from: Uint8Array, at: number): number {
  const century = two(from, at);
  const year = century * 100 + two(from, at + 2);
  const month = two(from, at + 5);
  const day = two(from, at + 8);
  if (!(year > 0 && month > 0 && month <= 12 && day > 0) || from[at + 4] !== MINUS || from[at + 7] !== MINUS)
    return Number.NaN;
  if (day > 28 && day > daysInMonth(year, month)) return Number.NaN;
  return day > 0 ? daysFromCivil(year, month, day) : Number.NaN;
}

// Two digits, or NaN.
function two(from: Uint8Array, at: number): number {
  const tens = (from[at] as number) - ZERO;
  const ones = (from[at + 1] as number) - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

export function int16(to: Uint8Array, at: number, value: number): void {
  to[at] = value >> 8;
  to[at + 1] = value;
}

export function int32(to: Uint8Array, at: number, value: number): void {
  to[at] = value >> 24;
  to[at + 1] = value >> 16;
  to[at + 2] = value >> 8;
  to[at + 3] = value;
}

// Of `low` only the last 32 bits count.
function int64(to: Uint8Array, at: number, high: number, low: number): void {
  int32(to, at, high);
  int32(to, at + 4, low);
}
