// New records for a file, kept aside until the old ones are written, and until the last of each key is known: one JSON array a line.
import { createReadStream, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { keyText } from "../../engine/keys.ts";
import type { Row, Value } from "../../engine/types.ts";
import { wholeLines } from "../postgres/copy-text.ts";

export interface Spool {
  add(rows: readonly Row[]): Promise<void>;
  /** For every key the place of its last row. */
  lastOfKeys(places: readonly number[]): Promise<Map<string, number>>;
  /** The rows in order; with `last` only those that are their key's last, the others are given to `passedBy`. */
  read(last: Map<string, number> | null, passedBy: (row: Row) => void): AsyncGenerator<Row[]>;
  remove(): Promise<void>;
}

export async function openSpool(path: string): Promise<Spool> {
  const file = await open(path, "w", 0o600);
  let places: readonly number[] = [];
  const all = async function* (): AsyncGenerator<Row[]> {
    for await (const { lines } of wholeLines(createReadStream(path) as AsyncIterable<Buffer>)) yield lines.map(decode);
  };
  return {
    add: async (rows) => {
      // A single write may take a part only.
      await file.appendFile(rows.map((row) => `${JSON.stringify(row.map(encode))}\n`).join(""));
    },
    lastOfKeys: async (keyPlaces) => {
      places = keyPlaces;
      const last = new Map<string, number>();
      let place = 0;
      for await (const rows of all())
        for (const row of rows) last.set(keyText(keyPlaces.map((at) => row[at] ?? null)), place++);
      return last;
    },
    read: async function* (last, passedBy) {
      let place = 0;
      const isLast = (row: Row) => {
        if (last?.get(keyText(places.map((at) => row[at] ?? null))) === place++) return true;
        passedBy(row);
        return false;
      };
      for await (const rows of all()) yield last === null ? rows : rows.filter(isLast);
    },
    remove: async () => {
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
