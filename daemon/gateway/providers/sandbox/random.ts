// The sandbox's only source of variety: a generator seeded by text, so that the same request gets the same answer for ever.
import { createHash } from "node:crypto";

export interface Random {
  /** An integer in [0, bound). */
  below(bound: number): number;
  pick<T>(items: readonly T[]): T;
}

/** xorshift over a SHA-256 of the seed text. */
export function seededRandom(seed: string): Random {
  const digest = createHash("sha256").update(seed).digest();
  let a = digest.readUInt32LE(0) | 1;
  const next = () => {
    a ^= a << 13;
    a ^= a >>> 17;
    a ^= a << 5;
    return a >>> 0;
  };
  const below = (bound: number) => (bound <= 1 ? 0 : next() % bound);
  return { below, pick: (items) => items[below(items.length)] as (typeof items)[number] };
}
