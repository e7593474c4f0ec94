// Secrets that were handed out, struck out of what is written down.
import { hiding } from "#shared/redact.ts";

/** Shorter ones are found in half of all words. */
const SHORTEST = 4;
/** Of one cell: rotated values come and go, and a line is searched for each. */
const MAX_KEPT = 1_000;
/** What a cell puts behind a text that it has cut off. */
const CUT = "…";

/** What strikes those out that are known now, and the beginning of one where a text was cut off. */
export function striker(secrets: Iterable<string>): (text: string) => string {
  const known = [...secrets];
  const hide = hiding(known, SHORTEST);
  return (text) => withoutBeginning(hide(text), known);
}

function withoutBeginning(text: string, secrets: readonly string[]): string {
  if (!text.endsWith(CUT)) return text;
  const kept = text.slice(0, -CUT.length);
  let end = kept.length;
  for (const secret of secrets)
    for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) end = Math.min(end, beginningAt(kept, form));
  return end === kept.length ? text : `${kept.slice(0, end)}[redacted]${CUT}`;
}

/** From where on the rest of the text is how the secret begins; its length where it is not. */
function beginningAt(text: string, secret: string): number {
  const head = secret.slice(0, SHORTEST);
  if (head.length < SHORTEST) return text.length;
  for (let at = text.indexOf(head, text.length - secret.length); at !== -1; at = text.indexOf(head, at + 1))
    if (secret.startsWith(text.slice(at))) return at;
  return text.length;
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
