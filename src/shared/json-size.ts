// What it would cost to parse JSON, found without parsing it: how deep it nests, how many containers, values and different keys it has.
import { randomInt } from "node:crypto";
import { stringEnd } from "./json-text.ts";

export interface JsonSize {
  readonly depth: number;
  /** Objects and arrays. */
  readonly containers: number;
  /** Different keys, about: never more than there are. */
  readonly keys: number;
  /** Values that another one follows: about all of them. */
  readonly values: number;
}

/** Beyond these a body, or what is parsed of one, would hold up everybody; a completion's. */
export const MOST_JSON: JsonSize = {
  /** No real request comes near. */
  depth: 128,
  /** 64 MB of `[]` would become gigabytes of heap. */
  containers: 500_000,
  /** A key that no other object has costs a microsecond or two: a million would take seconds. */
  keys: 250_000,
  /** Of any kind: 64 MB of numbers would take a second. */
  values: 4_000_000,
};
/** Characters or bytes up to which it is parsed before it is looked at: whatever it holds, it cannot become much. */
export const SMALL_JSON = 256 * 1024;

const QUOTE = 0x22;
/** A bit for each key's hash. */
const KEY_BITS = 22;
// Who does not know where hashing begins cannot choose keys of one hash.
const HASH_SEED = randomInt(2 ** 31);

/**
 * Measures one text after the other: the depth of each, of the rest what they have together. Looks no further where one of the four is beyond `most`.
 * Well-formedness is left to JSON.parse.
 */
export function jsonMeter(most: JsonSize): (text: string) => JsonSize {
  const seen = new Uint8Array(2 ** (KEY_BITS - 3));
  let containers = 0;
  let keys = 0;
  let values = 0;
  return (text) => {
    let depth = 0;
    let deepest = 0;
    // The last string, until a colon has made a key of it: in what is no JSON many colons may follow one.
    let from = 0;
    let to = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === QUOTE) {
        from = i;
        i = stringEnd(text, i) - 1;
        to = i;
      } else if (code === 0x7b || code === 0x5b) {
        deepest = Math.max(deepest, ++depth);
        if (depth > most.depth || ++containers > most.containers) break;
      } else if (code === 0x7d || code === 0x5d) depth--;
      else if (code === 0x2c && ++values > most.values) break;
      else if (code === 0x3a && from < to) {
        const hash = hashOf(text, from, to);
        from = to;
        const bit = 1 << (hash & 7);
        if (((seen[hash >>> 3] ?? 0) & bit) === 0 && ++keys > most.keys) break;
        seen[hash >>> 3] = (seen[hash >>> 3] ?? 0) | bit;
      }
    }
    return { depth: deepest, containers, keys, values };
  };
}

/** Whether it is beyond in one of the four. */
export function isBeyond(size: JsonSize, most: JsonSize): boolean {
  return (
    size.depth > most.depth || size.containers > most.containers || size.keys > most.keys || size.values > most.values
  );
}

// FNV-1a; the last step brings the upper bits into those that are kept.
function hashOf(text: string, from: number, to: number): number {
  let hash = HASH_SEED;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) & (2 ** KEY_BITS - 1);
}
