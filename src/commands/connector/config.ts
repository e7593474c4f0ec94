// The configuration of a connector as the commands take it.
import { readJsonInput } from "#commands/json-input.ts";
import { MagicError } from "#contract/errors.ts";
import { wholeNumbers } from "#shared/json-text.ts";

/** `--config JSON|@FILE|-`; absent is {}. Throws usage. */
export async function configOf(given: string | undefined): Promise<Record<string, unknown>> {
  if (given === undefined) return {};
  const value = await readJsonInput(given, "--config", wholeNumbers);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new MagicError("usage", "--config takes a JSON object.");
  return value as Record<string, unknown>;
}
