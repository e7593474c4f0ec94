// A Parquet column on its way to the disk: values go straight into their PLAIN encoding (Parquet format, Encodings.md), so that a row
// costs no object of its own. One row group's worth at a time.
import { float } from "../../../engine/fit-checks.ts";
import { microsOf } from "../../../engine/temporal.ts";
import type { Column, Value } from "../../../engine/types.ts";
import { daysIn, microsIn } from "./times.ts";

/** A value that Parquet's type cannot hold; the message says why. */
export class NoForm extends Error {}

const noForm = (value: string | Uint8Array, what: string) =>
  new NoForm(`${typeof value === "string" ? value.slice(0, 40) : "a blob"} has no form in a Parquet ${what}`);

export interface ColumnBuffer {
  /** Throws NoForm, and is then as before. */
  add(value: Value): void;
  /** Takes the last value back. */
  undo(): void;
  /** Bytes of the values so far. */
  readonly size: number;
  /** Definition levels with their length, then the values: the body of a data page, version 1. */
  page(): Buffer;
  reset(): void;
}

interface Bytes {
  buffer: Buffer;
  view: DataView;
  length: number;
}

type Put = (into: Bytes, value: string | Uint8Array) => void;

/** Values of one column, optional (definition level 1). `physical`: the type that the schema gives it. */
export function columnBuffer(column: Column, physical: string, decimal: boolean): ColumnBuffer {
  const put = putter(column, physical, decimal);
  const bits = physical === "BOOLEAN";
  const bytes = bytesOf(4096);
  let defined = new Uint8Array(1024);
  let rows = 0;
  let nulls = 0;
  let before = 0;
  return {
    add: (value) => {
      before = bytes.length;
      if (value !== null) {
        try {
          put(bytes, value);
        } catch (error) {
          bytes.length = before;
          throw error;
        }
      }
      if (rows === defined.length) {
        const grown = new Uint8Array(rows * 2);
        grown.set(defined);
        defined = grown;
      }
      defined[rows++] = value === null ? 0 : 1;
      if (value === null) nulls++;
    },
    undo: () => {
      bytes.length = before;
      if (defined[--rows] === 0) nulls--;
    },
    get size() {
      return bytes.length;
    },
    page: () => {
      const levels = nulls === 0 ? oneRun(rows) : bitPacked(defined, rows);
      const head = Buffer.alloc(4);
      head.writeUInt32LE(levels.length);
      const values = bytes.buffer.subarray(0, bytes.length);
      return Buffer.concat([head, levels, bits ? packed(values, values.length) : values]);
    },
    reset: () => {
      // One huge value must not keep its room for ever.
      if (bytes.buffer.length > 64 << 20) Object.assign(bytes, bytesOf(4096));
      bytes.length = 0;
      rows = 0;
      nulls = 0;
    },
  };
}

function bytesOf(size: number): Bytes {
  const buffer = Buffer.allocUnsafeSlow(size);
  return { buffer, view: new DataView(buffer.buffer), length: 0 };
}

function room(into: Bytes, more: number): number {
  const at = into.length;
  if (at + more > into.buffer.length) {
    const grown = bytesOf(Math.max(into.buffer.length * 2, at + more));
    into.buffer.copy(grown.buffer, 0, 0, at);
    into.buffer = grown.buffer;
    into.view = grown.view;
  }
  into.length = at + more;
  return at;
}

// SQLite's values, and those of JSON, may be others than their column's type says.
function putter({ type, untyped }: Column, physical: string, decimal: boolean): Put {
  if (physical === "BOOLEAN")
    return (into, value) => {
      if (value !== "true" && value !== "false") throw noForm(value, "boolean");
      const at = room(into, 1);
      into.buffer[at] = value === "true" ? 1 : 0;
    };
  if (physical === "FLOAT" || physical === "DOUBLE") {
    const bits = physical === "FLOAT" ? 32 : 64;
    const digits = untyped ? float(bits, `a float of ${bits} bits`) : null;
    return (into, value) => {
      const number = Number(value);
      if (!Number.isFinite(number) ? !/^(NaN|-?Infinity)$/.test(String(value)) : value === "")
        throw noForm(value, "float");
      const reason = digits?.(String(value));
      if (reason) throw new NoForm(reason);
      const at = room(into, bits / 8);
      if (bits === 32) into.view.setFloat32(at, number, true);
      else into.view.setFloat64(at, number, true);
    };
  }
  if (physical === "INT32")
    return (into, value) => {
      const number = type.kind === "date" ? days(String(value)) : Number(value);
      if (number !== (number | 0) || (type.kind === "int" && !/^[+-]?\d+$/.test(String(value))))
        throw noForm(value, "32-bit integer");
      const at = room(into, 4);
      into.view.setInt32(at, number, true);
    };
  if (physical === "INT64" && type.kind === "timestamp") return (into, value) => putMicros(into, String(value));
  if (physical === "INT64") return (into, value) => putInteger(into, String(value));
  if (decimal && type.kind === "decimal") {
    const { precision = 38, scale = 0 } = type;
    const beyond = 10n ** BigInt(precision);
    return (into, value) => putDecimal(into, scaled(String(value), scale, beyond));
  }
  if (type.kind === "bytes") return putBytes;
  return (into, value) =>
    typeof value === "string" ? putText(into, value) : putText(into, `\\x${Buffer.from(value).toString("hex")}`);
}

function putText(into: Bytes, text: string): void {
  const start = room(into, 4 + (text.length > 4096 ? Buffer.byteLength(text) : text.length * 3));
  let at = start + 4;
  let ascii = text.length <= 48;
  if (ascii) {
    // A short text costs less here than a call out of JavaScript.
    const { buffer } = into;
    for (let n = 0; n < text.length; n++) {
      const code = text.charCodeAt(n);
      if (code > 127) {
        ascii = false;
        break;
      }
      buffer[at++] = code;
    }
  }
  if (!ascii) at = start + 4 + into.buffer.write(text, start + 4, "utf8");
  into.view.setUint32(start, at - start - 4, true);
  into.length = at;
}

function putBytes(into: Bytes, value: string | Uint8Array): void {
  const content = typeof value === "string" ? Buffer.from(value, "utf8") : value;
  const at = room(into, 4 + content.length);
  into.view.setUint32(at, content.length, true);
  into.buffer.set(content, at + 4);
}

function putInteger(into: Bytes, text: string): void {
  // "", " " and "0x10" are numbers to JavaScript.
  const number = text.length > 15 || text.charCodeAt(1) > 57 ? Number.NaN : Number(text);
  if (Number.isSafeInteger(number) && number !== 0) {
    putNumber(into, number);
    return;
  }
  const value = /^[+-]?\d+$/.test(text) ? BigInt(text) : null;
  if (value === null || BigInt.asIntN(64, value) !== value) throw noForm(text, "64-bit integer");
  const at = room(into, 8);
  into.view.setBigInt64(at, value, true);
}

function putNumber(into: Bytes, value: number): void {
  const at = room(into, 8);
  into.view.setUint32(at, value >>> 0, true);
  into.view.setInt32(at + 4, Math.floor(value / 4_294_967_296), true);
}

function putMicros(into: Bytes, text: string): void {
  const near = microsIn(text);
  if (near !== null) {
    putNumber(into, near);
    return;
  }
  const micros = microsOf(text);
  if (micros === null || BigInt.asIntN(64, micros) !== micros)
    throw new NoForm(`${text.slice(0, 40)} has no form in a Parquet timestamp`);
  const at = room(into, 8);
  into.view.setBigInt64(at, micros, true);
}

function days(text: string): number {
  const found = daysIn(text);
  if (found === null || Math.abs(found) > 0x7fffffff)
    throw new NoForm(`${text.slice(0, 40)} has no form in a Parquet date`);
  return found;
}

function putDecimal(into: Bytes, value: bigint): void {
  const at = room(into, 16);
  into.view.setBigInt64(at, value >> 64n);
  into.view.setBigUint64(at + 8, BigInt.asUintN(64, value));
}

function scaled(text: string, scale: number, beyond: bigint): bigint {
  const parts = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
  const fraction = parts?.[3] ?? "";
  if (!parts || fraction.length > scale)
    throw new NoForm(`${text.slice(0, 40)} has no form in a Parquet decimal of scale ${scale}`);
  const value = BigInt(`${parts[1]}${parts[2]}${fraction.padEnd(scale, "0")}`);
  if (value >= beyond || -value >= beyond)
    throw new NoForm(`${text.slice(0, 40)} has more digits than its Parquet decimal holds`);
  return value;
}

// RLE/bit-packing hybrid with a width of one bit: a run of ones.
function oneRun(count: number): Buffer {
  return Buffer.from([...varint(count * 2), 1]);
}

function bitPacked(levels: Uint8Array, count: number): Buffer {
  const groups = Math.ceil(count / 8);
  return Buffer.concat([Buffer.from(varint(groups * 2 + 1)), packed(levels, count)]);
}

function packed(flags: Uint8Array, count: number): Buffer {
  const out = Buffer.alloc(Math.ceil(count / 8));
  for (let at = 0; at < count; at++) if (flags[at] === 1) out[at >> 3] = (out[at >> 3] ?? 0) | (1 << (at & 7));
  return out;
}

function varint(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest % 128) | 128);
  out.push(rest);
  return out;
}
