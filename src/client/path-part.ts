import { MagicError } from "#contract/errors.ts";

/** What a command was given, as one segment of a path. Throws `usage` for what would name another path: nothing (a variable that is not set), dots. */
export function pathPart(given: unknown): string {
  if (typeof given === "string" && /^(\s*|\.\.?)$/.test(given))
    throw new MagicError("usage", `${JSON.stringify(given)} is no id and no name.`);
  return encodeURIComponent(String(given ?? ""));
}
