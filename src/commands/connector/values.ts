// Values that the connector commands take as JSON: on the line, from a file (@FILE), or from standard input (-).
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { MagicError } from "#contract/errors.ts";

/** Throws usage, naming the flag. */
export async function jsonValue(flag: string, given: string, cwd: string): Promise<unknown> {
  let text = given;
  try {
    if (given === "-") text = await readAll(process.stdin);
    else if (given.startsWith("@")) text = await readFile(resolve(cwd, given.slice(1)), "utf8");
    return JSON.parse(text);
  } catch (error) {
    throw new MagicError(
      "usage",
      `${flag}: ${error instanceof SyntaxError ? `not JSON: ${error.message}` : (error as Error).message}`,
    );
  }
}

/** A JSON object; absent is {}. */
export async function jsonObject(
  flag: string,
  given: string | undefined,
  cwd: string,
): Promise<Record<string, unknown>> {
  if (given === undefined) return {};
  const value = await jsonValue(flag, given, cwd);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new MagicError("usage", `${flag} takes a JSON object.`);
  return value as Record<string, unknown>;
}
