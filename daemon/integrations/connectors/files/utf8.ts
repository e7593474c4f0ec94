// Tells whether bytes that pass in chunks are valid UTF-8: decoding alone would replace what is not.
import { isUtf8 } from "node:buffer";

export interface Utf8Watch {
  take(chunk: Buffer): void;
  /** True once something was no UTF-8. */
  readonly broken: boolean;
}

export function watchUtf8(): Utf8Watch {
  let held = Buffer.alloc(0);
  let broken = false;
  return {
    take: (chunk) => {
      if (broken) return;
      const bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
      const end = wholeEnd(bytes);
      broken = !isUtf8(end === bytes.length ? bytes : bytes.subarray(0, end));
      held = Buffer.from(bytes.subarray(end));
    },
    get broken() {
      return broken;
    },
  };
}

/** Where the last character begins, if its end is still to come; else the length. */
export function wholeEnd(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
