// esbuild takes each byte that is not UTF-8 for U+FFFD, and says nothing: a handler would answer with other text than its source has.
import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";
import type { Message, Metafile } from "esbuild";
import { packageOf } from "./policy.ts";
import { fileOf, messageAt } from "./reach.ts";

/** An error for each file that is not UTF-8, packages' aside: nobody could correct those. */
export function garbledSources(code: string, { inputs }: Metafile, folder: string): Message[] {
  if (!code.includes("\uFFFD")) return [];
  return Object.entries(inputs).flatMap(([name, input]) => {
    const file = fileOf(folder, name);
    if (file === undefined || packageOf(file) !== undefined || isBytes(file, input)) return [];
    const source = readFileSync(file);
    if (isUtf8(source)) return [];
    const lines = source.toString("latin1").split("\n");
    const line = lines.findIndex((text) => !isUtf8(Buffer.from(text, "latin1"))) + 1;
    return [messageAt({ file, line, column: 0 }, "the file is not UTF-8")];
  });
}

function isBytes(file: string, input: Metafile["inputs"][string]): boolean {
  return file.endsWith(".wasm") || input.with?.["type"] === "bytes";
}
