// Numbers that depend on a seed and ids alone: the same on every machine and after every restart.
import { createHash } from "node:crypto";

export interface Random {
  /** From 0 up to but not including 1. */
  next(): number;
  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number;
  /** 16 hexadecimal digits. */
  hex(): string;
}

export function seededRandom(...parts: readonly (string | number)[]): Random {
  const seed = JSON.stringify(parts);
  let block = 0;
  let bytes = Buffer.alloc(0);
  const take = (count: number): Buffer => {
    if (bytes.length < count) bytes = createHash("sha256").update(`${block++}:${seed}`).digest();
    const taken = bytes.subarray(0, count);
    bytes = bytes.subarray(count);
    return taken;
  };
  const next = (): number => take(6).readUIntBE(0, 6) / 2 ** 48;
  return {
    next,
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    hex: () => take(8).toString("hex"),
  };
}
