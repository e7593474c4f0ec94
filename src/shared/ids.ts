// Prefixed, sortable ids: `<prefix>_` + 10 characters of milliseconds + 16 of randomness, Crockford base32 in lower case (a ULID).
import { randomFillSync } from "node:crypto";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const codes = Buffer.from(alphabet, "latin1");
const pool = Buffer.alloc(4096);
let offset = pool.length;
let lastMs = -1;

/** The last id: room for a prefix, milliseconds, randomness. Texts of it are in one piece, which whoever writes them needs: JSON at half the cost. */
const characters = Buffer.alloc(64 + 26);
const PREFIX_END = 64;
const RANDOM = PREFIX_END + 10;
/** The random digits of the last id. */
const last = new Uint8Array(16);

/** A new id such as `conn_01k...`: two ids of one process sort in the order in which they were made. */
export function newId(prefix: string, now: number = Date.now()): string {
  next(now);
  let start = PREFIX_END;
  if (!prefix.endsWith("-")) characters[--start] = 0x5f;
  start -= prefix.length;
  for (let i = 0; i < prefix.length; i++) characters[start + i] = prefix.charCodeAt(i);
  return characters.toString("latin1", start);
}

/** The 26 characters alone. */
export function sortable(now: number = Date.now()): string {
  next(now);
  return characters.toString("latin1", PREFIX_END);
}

function next(now: number): void {
  if (now <= lastMs) increment();
  else {
    lastMs = now;
    for (let shift = 9; shift >= 0; shift--)
      characters[RANDOM - 1 - shift] = codes[Math.floor(now / 32 ** shift) % 32] ?? 0;
    fresh();
  }
}

// Drawing random bytes one id at a time costs more than the id: take them from a pool.
function fresh(): void {
  if (offset + 16 > pool.length) {
    randomFillSync(pool);
    offset = 0;
  }
  for (let i = 0; i < 16; i++) put(i, (pool[offset + i] ?? 0) & 31);
  offset += 16;
}

function put(place: number, digit: number): void {
  last[place] = digit;
  characters[RANDOM + place] = codes[digit] ?? 0;
}

/** Random bytes in hex, from the same pool: trace and span ids. */
export function randomHex(bytes: number): string {
  if (offset + bytes > pool.length) {
    randomFillSync(pool);
    offset = 0;
  }
  offset += bytes;
  return pool.toString("hex", offset - bytes, offset);
}

function increment(): void {
  let place = 15;
  for (; place >= 0 && last[place] === 31; place--) put(place, 0);
  if (place >= 0) put(place, (last[place] ?? 0) + 1);
}
