// What a provider's errors may quote of its own configuration and nobody else is to read.
import { secretsIn } from "#shared/redact.ts";
import type { Target } from "./adapter.ts";

/** Its credentials, and what the query of its address and its headers hold under a secret's name. */
export function secretsOf({ credentials, baseUrl, headers }: Target): string[] {
  const query = baseUrl === null ? null : URL.parse(baseUrl)?.searchParams;
  return secretsIn([{ ...credentials }, Object.fromEntries(query ?? []), headers]);
}
