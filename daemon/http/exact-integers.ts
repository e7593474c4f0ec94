// Ids of twenty digits in JSON: as a number they would be rounded, and name another account. In the members that a route names they stay text,
// as on the command line.
import { wholeNumbers } from "#shared/json-text.ts";

/** `body` as `text` was parsed to it, with the integers beyond 2^53 in its `members` as text with all their digits. */
export function withExactIntegers(body: unknown, text: string, members: readonly string[]): unknown {
  if (!/\d{16}/.test(text) || typeof body !== "object" || body === null) return body;
  // A byte order mark, which the body's parser passed over.
  const exact = JSON.parse(text.replace(/^\ufeff/, ""), wholeNumbers) as Record<string, unknown>;
  const kept = members.filter((name) => Object.hasOwn(body, name)).map((name) => [name, exact[name]]);
  return { ...body, ...Object.fromEntries(kept) };
}
