// Ids of twenty digits in JSON: as a number they would be rounded, and name another account. In the members that a route names they stay text,
// as on the command line.

// A string whole, or a long integer whole: in a text that has been parsed already nothing else holds digits.
const TOKEN = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** `body` as `text` was parsed to it, with the integers beyond 2^53 in its `members` as text with all their digits. */
export function withExactIntegers(body: unknown, text: string, members: readonly string[]): unknown {
  if (!/\d{16}/.test(text) || typeof body !== "object" || body === null) return body;
  const exact = JSON.parse(text.replace(TOKEN, quoted)) as Record<string, unknown>;
  const kept = members.filter((name) => Object.hasOwn(body, name)).map((name) => [name, exact[name]]);
  return { ...body, ...Object.fromEntries(kept) };
}

const quoted = (token: string): string =>
  token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${token}"`;
