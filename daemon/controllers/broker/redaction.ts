// Secrets that were handed out, struck out of what is written down.
import { hideSecret } from "#shared/redact.ts";

/** Shorter ones are found in half of all words. */
const SHORTEST = 4;
/** Of one cell: rotated values come and go, and a line is searched for each. */
const MAX_KEPT = 200;

export function strike(text: string, secrets: Iterable<string>): string {
  // The longest first: one may be the beginning of another.
  const known = [...secrets].filter((secret) => secret.trim().length >= SHORTEST).sort((a, b) => b.length - a.length);
  return known.reduce(hideSecret, text);
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
