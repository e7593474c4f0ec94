// What a command reads from its line: global options, and values that may be missing.
import { MagicError } from "#contract/errors.ts";
import { type Format, formats } from "#output/output.ts";
import type { GlobalOptions, Wanted } from "./command.ts";

type UserConfig = Readonly<Record<string, unknown>>;

/** The format that argv asks for, read before the line is parsed so that even a usage error has the right form. */
export function formatOf(argv: readonly string[], env: NodeJS.ProcessEnv, user: UserConfig): Format {
  let format =
    formats.find((one) => one === env["MAGIC_OUTPUT"]) ?? formats.find((one) => one === user["output"]) ?? "text";
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? "";
    if (word === "--") break;
    if (word === "--json") format = "json";
    const value = word === "--output" ? argv[at + 1] : word.startsWith("--output=") ? word.slice(9) : undefined;
    if (value === "text" || value === "json" || value === "ndjson") format = value;
  }
  return format;
}

export function globalsOf(
  options: Readonly<Record<string, unknown>>,
  format: Format,
  env: NodeJS.ProcessEnv,
  user: UserConfig,
): GlobalOptions {
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  refuseUnknown(env, "MAGIC_OUTPUT", formats);
  refuseUnknown(env, "MAGIC_ENVIRONMENT", ["sandbox", "live"]);
  return {
    format,
    live: options["live"] === true || (text(env["MAGIC_ENVIRONMENT"]) ?? user["environment"]) === "live",
    url: text(options["url"]) ?? text(env["MAGIC_URL"]) ?? text(user["url"]),
    root: text(options["root"]),
    quiet: options["quiet"] === true,
  };
}

// A slip in a variable must not mean text to a script that reads JSON, nor the sandbox to one that means live.
function refuseUnknown(env: NodeJS.ProcessEnv, name: string, known: readonly string[]): void {
  const value = env[name];
  if (!value || known.includes(value)) return;
  throw new MagicError("usage", `${name} cannot be ${JSON.stringify(value)}.`, {
    extra: { next: `Use one of: ${known.join(", ")}.` },
  });
}

/** Asks for what is missing on a terminal; elsewhere one usage error lists every missing flag. */
export async function needValues<T extends Record<string, Wanted<unknown>>>(
  wanted: T,
  interactive: boolean,
): Promise<{ [K in keyof T]: NonNullable<T[K]["value"]> }> {
  const given: Record<string, unknown> = {};
  const missing = Object.entries(wanted).filter(([, { value }]) => value === undefined);
  const unasked = missing.filter(([, { ask }]) => !interactive || !ask).map(([, { flag }]) => flag);
  if (unasked.length > 0)
    throw new MagicError("usage", `Missing: ${unasked.join(", ")}.`, { extra: { missing: unasked } });
  for (const [name, { value, ask }] of Object.entries(wanted)) given[name] = value ?? (await ask?.());
  return given as { [K in keyof T]: NonNullable<T[K]["value"]> };
}
