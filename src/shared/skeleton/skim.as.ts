// AssemblyScript, not TypeScript: `npm run skim` makes skim.wasm.ts of it. WebAssembly because sixteen bytes are looked at in one step there, and
// in JavaScript one.

/** Bytes of a text, quotes and all, from which it is cut out: a shorter one is read sooner than found again. */
const LONG: usize = 256;
/** By which what stands for a cut begins. */
const MARK: u8 = 0x7f;
const QUOTE: u8 = 0x22;
const BACKSLASH: u8 = 0x5c;
const COLON: u8 = 0x3a;
const LETTER_U: u8 = 0x75;

/** Four u32 of each cut: where it begins and ends in the JSON, and its text in what is decoded. */
const CUT: usize = 16;

/** By the letter behind a backslash: the byte that is meant, 0 for none. */
// biome-ignore format: a row for sixteen
const escapes: usize = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2f,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x5c, 0, 0, 0,
  0, 0, 0x08, 0, 0, 0, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0,
  0, 0, 0x0d, 0, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

/** Where the skeleton ends. */
let skeletonEnd: usize = 0;
/** Where the decoded text ends that `decode` has written. */
let decodedEnd: usize = 0;

export function endOfSkeleton(): usize {
  return skeletonEnd;
}

/**
 * Writes JSON without its long texts (those that are values, not keys), the texts decoded (UTF-8) and where they were. What stands outside of texts is
 * not looked at.
 *
 * @param json UTF-8, 64 bytes longer than `length`.
 * @returns how many were cut out; -1 where a text is not well-formed, is half of a surrogate pair, or begins as what stands for a cut.
 */
export function skim(json: usize, length: usize, skeleton: usize, decoded: usize, cuts: usize): i32 {
  const end = json + length;
  // A text that never closes ends here.
  for (let i: usize = 0; i < 64; i++) store<u8>(end + i, QUOTE);
  let count = 0;
  let at = json;
  while (true) {
    const outside = at;
    at = nextQuote(at);
    copy(outside, min(at, end), skeleton);
    skeleton += min(at, end) - outside;
    if (at >= end) break;

    const open = at;
    at = decode(open + 1, decoded);
    if (at === 0 || at >= end) return -1;
    at++;
    if (at - open < LONG || isKey(at)) {
      if (beginsAsMark(open + 1)) return -1;
      copy(open, at, skeleton);
      skeleton += at - open;
      continue;
    }
    store<u8>(skeleton, QUOTE);
    store<u8>(skeleton + 1, MARK);
    for (let digit = 0; digit < 3; digit++) store<u8>(skeleton + 2 + digit, <u8>(0x60 | ((count >> (5 * digit)) & 31)));
    store<u8>(skeleton + 5, QUOTE);
    skeleton += 6;
    store<u32>(cuts, <u32>(open - json));
    store<u32>(cuts + 4, <u32>(at - json));
    store<u32>(cuts + 8, <u32>decoded);
    store<u32>(cuts + 12, <u32>decodedEnd);
    cuts += CUT;
    count++;
    decoded = decodedEnd;
  }
  skeletonEnd = skeleton;
  return count;
}

function nextQuote(at: usize): usize {
  while (true) {
    const mask = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(QUOTE)));
    if (mask !== 0) return at + ctz(mask);
    at += 16;
  }
}

/** Up to 15 bytes more than it has to. */
function copy(from: usize, end: usize, to: usize): void {
  for (; from < end; from += 16, to += 16) v128.store(to, v128.load(from));
}

function isKey(at: usize): bool {
  while (true) {
    const byte = load<u8>(at++);
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte === COLON;
  }
}

function beginsAsMark(at: usize): bool {
  const first = load<u8>(at);
  return first === MARK || (first === BACKSLASH && load<u8>(at + 1) === LETTER_U && hex(at + 2) === MARK);
}

/** @returns where the text's closing quote is, 0 if it is not well-formed; up to 64 bytes more than decoded are written. */
function decode(at: usize, to: usize): usize {
  while (true) {
    let special = specials(at);
    let from: usize = 0;
    while (true) {
      const next: usize = special === 0 ? 64 : <usize>ctz(special);
      v128.store(to, v128.load(at + from));
      v128.store(to, v128.load(at + from, 16), 16);
      if (next - from > 32) copy(at + from + 32, at + next, to + 32);
      to += next - from;
      if (next === 64) {
        at += 64;
        break;
      }
      const byte = load<u8>(at + next);
      if (byte !== BACKSLASH) {
        decodedEnd = to;
        return byte === QUOTE ? at + next : 0;
      }
      const letter = load<u8>(at + next + 1);
      if (letter === LETTER_U) {
        const read = decodeUnicode(at + next, to);
        if (read === 0) return 0;
        to = decodedEnd;
        at += next + read;
        break;
      }
      const meant = letter < 128 ? load<u8>(escapes + letter) : 0;
      if (meant === 0) return 0;
      store<u8>(to++, meant);
      from = next + 2;
      if (from >= 64) {
        at += from;
        break;
      }
      special &= ~((<u64>3) << next);
    }
  }
}

/** A bit for each of the next 64 bytes that is no plain part of a text. */
function specials(at: usize): u64 {
  return (
    specialsOf(v128.load(at)) |
    (specialsOf(v128.load(at, 16)) << 16) |
    (specialsOf(v128.load(at, 32)) << 32) |
    (specialsOf(v128.load(at, 48)) << 48)
  );
}

function specialsOf(bytes: v128): u64 {
  const quotes = i8x16.eq(bytes, i8x16.splat(QUOTE));
  const slashes = i8x16.eq(bytes, i8x16.splat(BACKSLASH));
  const controls = i8x16.lt_u(bytes, i8x16.splat(0x20));
  return <u64>(<u32>i8x16.bitmask(v128.or(v128.or(quotes, slashes), controls)));
}

/** \uXXXX, or a pair of them, as UTF-8. @returns how many bytes were read, 0 for half of a pair or what is no hexadecimal number. */
function decodeUnicode(at: usize, to: usize): usize {
  let code = hex(at + 2);
  let read: usize = 6;
  if (code >= 0xd800 && code < 0xe000) {
    if (load<u8>(at + 6) !== BACKSLASH || load<u8>(at + 7) !== LETTER_U) return 0;
    const low = hex(at + 8);
    if (code >= 0xdc00 || low < 0xdc00 || low >= 0xe000) return 0;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    read = 12;
  }
  if (code < 0) return 0;
  if (code < 0x80) store<u8>(to++, <u8>code);
  else {
    if (code < 0x800) store<u8>(to++, <u8>(0xc0 | (code >> 6)));
    else {
      if (code < 0x10000) store<u8>(to++, <u8>(0xe0 | (code >> 12)));
      else {
        store<u8>(to++, <u8>(0xf0 | (code >> 18)));
        store<u8>(to++, <u8>(0x80 | ((code >> 12) & 0x3f)));
      }
      store<u8>(to++, <u8>(0x80 | ((code >> 6) & 0x3f)));
    }
    store<u8>(to++, <u8>(0x80 | (code & 0x3f)));
  }
  decodedEnd = to;
  return read;
}

/** Of four digits; -1 where one is none. */
function hex(at: usize): i32 {
  let value = 0;
  for (let i: usize = 0; i < 4; i++) {
    const byte = <i32>load<u8>(at + i);
    let digit = byte - 0x30;
    if (<u32>digit > 9) {
      digit = (byte | 0x20) - 0x61 + 10;
      if (digit < 10 || digit > 15) return -1;
    }
    value = (value << 4) | digit;
  }
  return value;
}
