// Values of options that several commands take.
import { MagicError } from "#contract/errors.ts";
import type { wholeNumbers } from "#shared/json-text.ts";
import { readJsonInput } from "./json-input.ts";

/** `a,b`; a part in double quotes may hold a comma. Throws `usage` where nothing is listed: a variable that is not set must not mean all. */
export function listValue(text: string | undefined, flag: string): string[] | undefined {
  if (text === undefined) return undefined;
  const parts = (text.match(/\s*"(?:[^"]|"")*"|[^,]+/g) ?? []).map((part) => part.trim()).filter((part) => part !== "");
  if (parts.length === 0) throw new MagicError("usage", `${flag} lists nothing.`);
  return parts.map((part) => {
    if (!part.startsWith('"')) return part;
    if (!/^"(?:[^"]|"")*"$/.test(part)) throw new MagicError("usage", `${flag}: nothing closes the quote of ${part}.`);
    return part.slice(1, -1).replaceAll('""', '"');
  });
}

/** A value that is not empty. Throws `usage`. */
export function filled(text: string | undefined, flag: string): string | undefined {
  if (text?.trim() === "") throw new MagicError("usage", `${flag} is empty.`);
  return text;
}

/** A JSON object from `JSON|@FILE|-`. Throws usage, naming the flag. */
export async function objectValue(
  given: string | undefined,
  flag: string,
  reviver?: typeof wholeNumbers,
): Promise<Record<string, unknown> | undefined> {
  if (given === undefined) return undefined;
  const value = await readJsonInput(given, flag, reviver);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new MagicError("usage", `${flag} takes a JSON object.`);
  return value as Record<string, unknown>;
}

/** The members that have a value. */
export function given(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** RFC 3339 of what was typed. Throws `usage`. */
export function timeOf(text: string | undefined, flag: string): string | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
  // Date.parse takes the 30th of February for the 2nd of March.
  if (!day || Number.isNaN(ms) || new Date(`${day}T00:00:00Z`).toJSON()?.slice(0, 10) !== day)
    throw new MagicError("usage", `${flag} takes a time such as 2027-01-01T00:00:00Z.`);
  return new Date(ms).toISOString();
}

/** RFC 3339 of --since and --until. Throws `usage` where the first is not before the second: nothing could be found. */
export function betweenOf(options: { readonly since?: string; readonly until?: string }): {
  since: string | undefined;
  until: string | undefined;
} {
  const since = timeOf(options.since, "--since");
  const until = timeOf(options.until, "--until");
  if (since !== undefined && until !== undefined && since >= until)
    throw new MagicError("usage", `--since ${options.since} is not before --until ${options.until}.`);
  return { since, until };
}

/** A number of at least `minimum`. Throws `usage`. */
export function numberOf(text: string | undefined, flag: string, minimum: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < minimum)
    throw new MagicError("usage", `${flag} takes a number of at least ${minimum}.`);
  return value;
}

/** A whole number of at least `minimum`. Throws `usage`. */
export function wholeOf(text: string | undefined, flag: string, minimum: number): number | undefined {
  const value = numberOf(text, flag, minimum);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new MagicError("usage", `${flag} takes a whole number of at least ${minimum}.`);
}

/** A port; 0 is any free one. Throws `usage`. */
export function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new MagicError("usage", `--port ${text} is not a port: 0 to 65535.`);
}

/** A time, or a span before now such as 10m, as the daemon takes either. Throws `usage`. */
export function sinceOf(text: string | undefined, flag: string): string | undefined {
  if (text === undefined || /^\d{1,9}[smhd]$/.test(text)) return text;
  if (/^\d{4}-\d\d-\d\d/.test(text)) return timeOf(text, flag);
  throw new MagicError(
    "usage",
    `${flag} takes a time such as 2027-01-01T00:00:00Z, or a span such as 30s, 10m, 2h, 7d.`,
  );
}
