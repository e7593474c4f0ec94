// The configuration of a connector as the commands take it.
import { objectValue } from "#commands/option-values.ts";
import { wholeNumbers } from "#shared/json-text.ts";

/** `--config JSON|@FILE|-`; absent is {}. Throws usage. */
export async function configOf(given: string | undefined): Promise<Record<string, unknown>> {
  return (await objectValue(given, "--config", wholeNumbers)) ?? {};
}
