// Secrets that were handed out, struck out of what is written down.
import { hiding } from "#shared/redact.ts";

/** Shorter ones are found in half of all words. */
const SHORTEST = 4;
/** Of one cell: rotated values come and go, and a line is searched for each. */
const MAX_KEPT = 200;

/** What strikes those out that are known now. */
export function striker(secrets: Iterable<string>): (text: string) => string {
  return hiding(secrets, SHORTEST);
}

/** Keeps the newest. */
export function remember(secrets: Set<string>, secret: string): void {
  secrets.delete(secret);
  secrets.add(secret);
  for (const oldest of secrets) {
    if (secrets.size <= MAX_KEPT) return;
    secrets.delete(oldest);
  }
}
