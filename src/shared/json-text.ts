// JSON as text: whether it is some, and what its values do not say: where a string ends, the digits of an integer.
const BACKSLASH = 0x5c;

/**
 * One past the closing quote of the string that opens at `open`; the text's length when it never closes. A regular expression would overflow the
 * stack at 8 MB.
 */
export function stringEnd(text: string, open: number): number {
  for (let from = open + 1; ; ) {
    const at = text.indexOf('"', from);
    if (at < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH && at - 1 - slashes > open) slashes++;
    if (slashes % 2 === 0) return at + 1;
    from = at + 1;
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** For `JSON.parse`: integers that no double is (ids of twenty digits) stay text, with all their digits. */
export function wholeNumbers(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  const written = context?.source ?? "";
  return typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(written) ? written : value;
}

/** The same for those alone that a double would change: 1e20 and 2^60 stay numbers. */
export function keptNumbers(this: unknown, key: string, value: unknown, context?: { source?: string }): unknown {
  const text = wholeNumbers.call(this, key, value, context);
  const held = typeof text === "string" && Number.isFinite(value) && BigInt(text) === BigInt(value as number);
  return held ? value : text;
}

// Which JSON lets stand as they are: DEL and C1, by which terminals begin their sequences too, and what turns the order of letters or ends a line.
const beyondJson = /[\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g;

/** The same JSON with nothing in its texts that a terminal obeys. */
export function withoutControls(json: string): string {
  return json.replace(beyondJson, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
