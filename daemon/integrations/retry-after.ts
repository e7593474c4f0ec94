// What a server that refuses says of when it may be asked again.

/** A moment's trouble of a token endpoint. */
export const isPassing = (status: number): boolean => status >= 500 || status === 429 || status === 408;

/** Retry-After (RFC 9110, section 10.2.3): seconds or an HTTP date. Undefined: it says nothing that can be read. */
export function retryAfterSeconds(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  // A header that stands twice comes as a list.
  const [, seconds] = /^\s*(\d+(?:\.\d+)?)\s*(?:,[\s\d.,]*)?$/.exec(value) ?? [];
  if (seconds !== undefined) return Number(seconds);
  // Other numbers would be read as years that are over.
  const at = /[a-z]{3}|\d-\d/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000);
}
