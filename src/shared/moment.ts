// Reads the moments that queries name.
import { LAST_MS } from "./clock.ts";

const RFC3339 = /^(\d{4}-\d\d-\d\d)(?:T(?!24)\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))?$/i;

/** Milliseconds of a time in RFC 3339, or of a day's beginning in UTC; null for anything else, days that no calendar has too. */
export function momentOf(text: string): number | null {
  const day = RFC3339.exec(text)?.[1];
  const ms = Date.parse(text);
  // Date.parse takes the 30th of February for the 2nd of March.
  if (!day || Number.isNaN(ms) || new Date(`${day}T00:00:00Z`).toJSON()?.slice(0, 10) !== day) return null;
  return Math.min(ms, LAST_MS);
}
