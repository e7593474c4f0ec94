// Values given on the command line as JSON, as @FILE, or as - for standard input.
import { isUtf8 } from "node:buffer";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { collectAwaited, readWhole } from "#shared/collect.ts";
import type { wholeNumbers } from "#shared/json-text.ts";

/** More than this is no argument. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The text of `JSON|@FILE|-`. Throws usage, naming the flag, when the file cannot be read. */
export async function readTextInput(given: string, flag: string): Promise<string> {
  if (given !== "-" && !given.startsWith("@")) return given;
  const name = given === "-" ? "standard input" : given.slice(1);
  try {
    // Not read at once: Ctrl-C would not be heard while nothing comes.
    const content = await (given === "-" ? collectAwaited(process.stdin, MAX_BYTES) : readWhole(name, MAX_BYTES));
    // Decoded all the same, each letter of another encoding would arrive as U+FFFD, and nobody would know.
    if (!isUtf8(content)) throw new Error("it is not UTF-8 text");
    return content.toString("utf8");
  } catch (error) {
    if (isMagicError(error)) throw error;
    throw new MagicError("usage", `${flag}: ${name} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
}

/** The value of `JSON|@FILE|-`. Throws usage, naming the flag, when it is not JSON. */
export async function readJsonInput(given: string, flag: string, reviver?: typeof wholeNumbers): Promise<unknown> {
  const text = await readTextInput(given, flag);
  try {
    // Some editors and shells begin a text with a byte order mark, which readers may ignore (RFC 8259, section 8.1).
    return JSON.parse(text.replace(/^\ufeff/, ""), reviver);
  } catch (error) {
    const what = given === "-" ? "standard input" : given.startsWith("@") ? given.slice(1) : "the value";
    throw new MagicError("usage", `${flag}: ${what} is not JSON: ${(error as Error).message}.`, {
      extra: { next: `Write ${flag} '{"key": "value"}', ${flag} @file.json, or ${flag} - for standard input.` },
    });
  }
}
