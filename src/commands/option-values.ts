// Values of options that several commands take.
import { MagicError } from "#contract/errors.ts";
import { readJsonInput } from "./json-input.ts";

/** `a,b`; a part in double quotes may hold a comma. Absent or empty: undefined. */
export function listValue(text: string | undefined): string[] | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const parts = text.match(/"(?:[^"]|"")*"|[^,]+/g) ?? [];
  return parts.map((part) => (part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part.trim()));
}

/** A JSON object from `JSON|@FILE|-`. Throws usage, naming the flag. */
export function objectValue(given: string | undefined, flag: string): Record<string, unknown> | undefined {
  if (given === undefined) return undefined;
  const value = readJsonInput(given, flag);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new MagicError("usage", `${flag} takes a JSON object.`);
  return value as Record<string, unknown>;
}

/** The members that have a value. */
export function given(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
