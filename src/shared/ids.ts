// Prefixed, sortable ids: `<prefix>_` + 10 characters of milliseconds + 16 of randomness, Crockford base32 in lower case (a ULID).
import { randomFillSync } from "node:crypto";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const codes = Buffer.from(alphabet, "latin1");
const pool = Buffer.alloc(4096);
let offset = pool.length;
let lastMs = -1;
/** The characters of `lastMs`, and the random digits of the last id. */
let moment = "";
const last = new Uint8Array(16);
const characters = Buffer.alloc(16);

/** A new id such as `conn_01k...`: two ids of one process sort in the order in which they were made. */
export function newId(prefix: string, now: number = Date.now()): string {
  const separator = prefix.endsWith("-") ? "" : "_";
  return prefix + separator + sortable(now);
}

/** The 26 characters alone. */
export function sortable(now: number = Date.now()): string {
  if (now <= lastMs) increment();
  else {
    lastMs = now;
    moment = momentOf(now);
    fresh();
  }
  for (let i = 0; i < 16; i++) characters[i] = codes[last[i] ?? 0] ?? 0;
  return moment + characters.toString("latin1", 0, 16);
}

function momentOf(ms: number): string {
  let text = "";
  for (let shift = 9; shift >= 0; shift--) text += alphabet[Math.floor(ms / 32 ** shift) % 32];
  return text;
}

// Drawing random bytes one id at a time costs more than the id: take them from a pool.
function fresh(): void {
  if (offset + 16 > pool.length) {
    randomFillSync(pool);
    offset = 0;
  }
  for (let i = 0; i < 16; i++) last[i] = (pool[offset + i] ?? 0) & 31;
  offset += 16;
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
  for (let i = 15; i >= 0; i--) {
    const digit = last[i] ?? 0;
    if (digit < 31) {
      last[i] = digit + 1;
      return;
    }
    last[i] = 0;
  }
}
