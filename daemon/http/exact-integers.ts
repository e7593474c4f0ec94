// Ids of twenty digits in JSON: as a number they would be rounded, and name another account. In the members that a route names they stay text,
// as on the command line.
import { keptNumbers, wholeNumbers } from "#shared/json-text.ts";

const METADATA = "metadata";

/**
 * `body` as `text` was parsed to it, with the integers beyond 2^53 in its `members` as text with all their digits. In `metadata`, which is
 * given back, those that a double holds stay numbers.
 */
export function withExactIntegers(body: unknown, text: string, members: readonly string[]): unknown {
  if (!/\d{16}/.test(text) || typeof body !== "object" || body === null) return body;
  // A byte order mark, which the body's parser passed over.
  const json = text.replace(/^\ufeff/, "");
  const read = (reviver: typeof wholeNumbers, names: readonly string[]): object => {
    const there = names.filter((name) => Object.hasOwn(body, name));
    if (there.length === 0) return {};
    const exact = JSON.parse(json, reviver) as Record<string, unknown>;
    return Object.fromEntries(there.map((name) => [name, exact[name]]));
  };
  const [given, rest] = [members.filter((name) => name === METADATA), members.filter((name) => name !== METADATA)];
  return { ...body, ...read(keptNumbers, given), ...read(wholeNumbers, rest) };
}
