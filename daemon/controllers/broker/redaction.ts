// Secrets that were handed out, struck out of what is written down.

/** Shorter ones are found in half of all words. */
const SHORTEST = 4;
/** Of one cell: rotated values come and go, and a line is searched for each. */
const MAX_KEPT = 200;
const REDACTED = "[redacted]";

export function strike(text: string, secrets: Iterable<string>): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue;
    // Inside JSON it is written with its quotes and newlines escaped.
    clean = clean.replaceAll(secret, REDACTED).replaceAll(JSON.stringify(secret).slice(1, -1), REDACTED);
  }
  return clean;
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
