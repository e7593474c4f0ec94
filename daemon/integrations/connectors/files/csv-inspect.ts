// Looks at CSV bytes as they pass to PostgreSQL unread: counts their records, sees quotes that PostgreSQL would drop from the middle of a
// field, and has those fields checked whose column may not keep every text. What it objects to is then read record by record.
import { type FieldCheck, readByRecord } from "../../engine/source.ts";

const QUOTE = 34;
const FEED = 10;
const RETURN = 13;
const COMMA = 44;
// A longer record is not worth holding here.
const HELD_BYTES = 8 << 20;

export class CsvInspector {
  readonly #checks: (FieldCheck["check"] | undefined)[] = [];
  #held: Buffer = Buffer.alloc(0);
  #count = 0;

  constructor(checks: readonly FieldCheck[]) {
    for (const { at, check } of checks) this.#checks[at] = check;
  }

  /** Throws `readByRecord()` where the bytes must not go on unread. */
  take(chunk: Buffer): void {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    let at = 0;
    let quote = -1;
    for (;;) {
      if (quote < at) quote = bytes.indexOf(QUOTE, at);
      if (quote < 0) quote = bytes.length;
      let feed = bytes.indexOf(FEED, at);
      if (feed < 0 && quote === bytes.length) break;
      if (feed >= 0 && feed < quote) this.#plain(bytes, at, feed);
      else feed = this.#quoted(bytes, at);
      if (feed < 0) break;
      this.#count++;
      at = feed + 1;
    }
    if (bytes.length - at > HELD_BYTES) throw readByRecord();
    // Copied: the chunk's memory goes on to somebody else.
    this.#held = Buffer.from(bytes.subarray(at));
  }

  /** After the last byte: a last record that no line feed ends. */
  end(): void {
    if (this.#held.length > 0) this.take(Buffer.of(FEED));
    if (this.#held.length > 0) throw readByRecord();
  }

  get records(): number {
    return this.#count;
  }

  // A record without quotes, up to its line feed.
  #plain(bytes: Buffer, from: number, feed: number): void {
    if (this.#checks.length === 0) return;
    const last = bytes[feed - 1] === RETURN && feed > from ? feed - 1 : feed;
    for (let field = 0, at = from; field < this.#checks.length && at <= last; field++) {
      let end = at;
      while (end < last && bytes[end] !== COMMA) end++;
      const check = this.#checks[field];
      if (check && end > at && check(bytes.toString("latin1", at, end)) !== null) throw readByRecord();
      at = end + 1;
    }
  }

  // The offset of the line feed behind a record with quotes; -1: it is not whole yet.
  #quoted(bytes: Buffer, from: number): number {
    for (let field = 0, at = from; ; field++) {
      const opened = bytes[at] === QUOTE;
      let end = opened ? closing(bytes, at + 1) : at;
      if (end < 0) return -1;
      if (opened) end++;
      else
        while (end < bytes.length && bytes[end] !== COMMA && bytes[end] !== FEED)
          if (bytes[end++] === QUOTE) throw readByRecord();
      // Behind a quoted field: a comma, or the line's end with or without a carriage return.
      const mark = opened && bytes[end] === RETURN ? end + 1 : end;
      if (mark >= bytes.length) return -1;
      if (bytes[mark] !== COMMA && bytes[mark] !== FEED) throw readByRecord();
      const check = this.#checks[field];
      if (check && check(fieldText(bytes, at, end, opened)) !== null) throw readByRecord();
      if (bytes[mark] === FEED) return mark;
      at = mark + 1;
      if (at >= bytes.length) return -1;
    }
  }
}

// The quote that ends the field; -1: not there yet, or nobody knows whether it is doubled.
function closing(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(QUOTE, from); at >= 0; at = bytes.indexOf(QUOTE, at + 2)) {
    if (at + 1 >= bytes.length) return -1;
    if (bytes[at + 1] !== QUOTE) return at;
  }
  return -1;
}

function fieldText(bytes: Buffer, from: number, to: number, quoted: boolean): string | null {
  if (quoted) return bytes.toString("latin1", from + 1, to - 1).replaceAll('""', '"');
  const text = bytes.toString("latin1", from, to);
  return text === "" || text === "\r" ? null : text.replace(/\r$/, "");
}
