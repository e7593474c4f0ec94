// New records for a file, kept aside until the old ones are written, and until the last of each key is known: one JSON array a line.
import { createReadStream, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Row, Value } from "../../engine/types.ts";
import { wholeLines } from "../postgres/copy-text.ts";
import { type KeyTable, openKeyTable } from "./key-table.ts";

export interface Spool {
  add(rows: readonly Row[]): Promise<void>;
  /** For every key the place of its last row. */
  lastOfKeys(keyOf: (row: Row) => string): Promise<KeyTable>;
  /** The rows in order; after `lastOfKeys` only those that are their key's last, the others are given to `passedBy`. */
  read(passedBy: (row: Row) => void): AsyncGenerator<Row[]>;
  remove(): Promise<void>;
}

export async function openSpool(path: string): Promise<Spool> {
  const file = await open(path, "w", 0o600);
  let isLast: ((row: Row, place: number) => boolean) | null = null;
  let keys: KeyTable | undefined;
  const all = async function* (): AsyncGenerator<Row[]> {
    for await (const { lines } of wholeLines(createReadStream(path) as AsyncIterable<Buffer>)) yield lines.map(decode);
  };
  return {
    add: async (rows) => {
      // A single write may take a part only.
      await file.appendFile(rows.map((row) => `${JSON.stringify(row.map(encode))}\n`).join(""));
    },
    lastOfKeys: async (keyOf) => {
      const last = await openKeyTable(`${path}.keys`);
      keys = last;
      let place = 0;
      for await (const rows of all()) for (const row of rows) last.set(keyOf(row), place++);
      isLast = (row, at) => last.get(keyOf(row)) === at;
      return last;
    },
    read: async function* (passedBy) {
      let place = 0;
      const stays = (row: Row) => {
        if (!isLast || isLast(row, place++)) return true;
        passedBy(row);
        return false;
      };
      for await (const rows of all()) yield rows.filter(stays);
    },
    remove: async () => {
      keys?.remove();
      await file.close().catch(() => {});
      rmSync(path, { force: true });
    },
  };
}

const encode = (value: Value) =>
  typeof value === "string" || value === null ? value : { hex: Buffer.from(value).toString("hex") };

function decode(line: string): Row {
  const row = JSON.parse(line) as (string | null | { hex: string })[];
  return row.map((value) => (value !== null && typeof value === "object" ? Buffer.from(value.hex, "hex") : value));
}
