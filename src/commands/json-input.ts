// Values given on the command line as JSON, as @FILE, or as - for standard input.
import { readFileSync } from "node:fs";
import { MagicError } from "#contract/errors.ts";

/** More than this is no argument. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The text of `JSON|@FILE|-`. Throws usage, naming the flag, when the file cannot be read. */
export function readTextInput(given: string, flag: string): string {
  if (given !== "-" && !given.startsWith("@")) return given;
  const name = given === "-" ? "standard input" : given.slice(1);
  try {
    const content = readFileSync(given === "-" ? 0 : name);
    if (content.byteLength > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
    return content.toString("utf8");
  } catch (error) {
    throw new MagicError("usage", `${flag}: ${name} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
}

/** The value of `JSON|@FILE|-`. Throws usage, naming the flag, when it is not JSON. */
export function readJsonInput(given: string, flag: string): unknown {
  const text = readTextInput(given, flag);
  try {
    return JSON.parse(text);
  } catch (error) {
    const what = given === "-" ? "standard input" : given.startsWith("@") ? given.slice(1) : "the value";
    throw new MagicError("usage", `${flag}: ${what} is not JSON: ${(error as Error).message}.`, {
      extra: { next: `Write ${flag} '{"key": "value"}', ${flag} @file.json, or ${flag} - for standard input.` },
    });
  }
}
