// Keeps secrets out of what is written down. Callers redact by name; this catches what slips through by shape.
const shapes =
  /\b(?:sk|gt|mt|cs|whsec|ghp|gho|xox[abp])[-_][A-Za-z0-9_+/=-]{12,}|\bAKIA[A-Z0-9]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\bBearer\s+[A-Za-z0-9._~+/=-]{8,}/g;
/** The password of a URL. Looked for only where there is a URL with one: looking behind costs at every character. */
const passwords = /(?<=:\/\/[^\s:/@]{0,200}:)[^\s@/]+(?=@)/g;

/** The text with everything that has the shape of a credential replaced. */
export function redactText(text: string, known: readonly string[] = []): string {
  let clean = text.replace(shapes, "[redacted]");
  if (clean.includes("://") && clean.includes("@")) clean = clean.replace(passwords, "[redacted]");
  for (const secret of known) if (secret.length >= 6) clean = clean.replaceAll(secret, "[redacted]");
  return clean;
}
