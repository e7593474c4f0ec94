// Lines of text into a file: buffered, and on the disk when finished.
import { open } from "node:fs/promises";
import type { Row } from "../../engine/types.ts";
import type { FileWriter } from "./format.ts";

const BUFFER = 1 << 20;

/** `lineOf` gives a row's line with its line feed, or says which value has no form. */
export async function textWriter(
  path: string,
  header: string,
  lineOf: (row: Row) => string | { column: string; reason: string },
): Promise<FileWriter> {
  const file = await open(path, "w");
  let pending = header;
  let bytes = 0;
  const flush = async () => {
    const chunk = Buffer.from(pending, "utf8");
    pending = "";
    for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
    bytes += chunk.length;
  };
  const add = async (line: string) => {
    pending += line;
    if (pending.length > BUFFER) await flush();
  };
  return {
    get bytes() {
      return bytes;
    },
    keep: async (lines) => {
      for (const line of lines) await add(`${line}\n`);
    },
    write: async (rows) => {
      const bad: { row: number; column: string; reason: string }[] = [];
      for (const [at, row] of rows.entries()) {
        const line = lineOf(row);
        if (typeof line !== "string") bad.push({ row: at, ...line });
        else await add(line);
      }
      return bad;
    },
    finish: async () => {
      await flush();
      await file.sync();
      await file.close();
    },
    abort: () => file.close(),
  };
}
