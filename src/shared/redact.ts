// Keeps secrets out of what is written down. Callers redact by name; this catches what slips through by shape.
const shapes =
  /\b(?:sk|gt|mt|cs|whsec|ghp|gho|xox[abp])[-_][A-Za-z0-9_+/=-]{12,}|\bAKIA[A-Z0-9]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\bBearer\s+[A-Za-z0-9._~+/=-]{8,}/g;
/** The password of a URL. Looked for only where there is a URL with one: looking behind costs at every character. */
const passwords = /(?<=:\/\/[^\s:/@]{0,200}:)[^\s@/]+(?=@)/g;

/** Of longer ones, keys in PEM, no address is made. */
const MAX_ENCODED = 1000;

/** The text with everything that has the shape of a credential replaced, and what is `known` however an address or JSON writes it. */
export function redactText(text: string, known: readonly string[] = []): string {
  let clean = text;
  for (const secret of known) {
    if (secret.length < 6) continue;
    clean = clean.replaceAll(secret, "[redacted]");
    if (secret.length <= MAX_ENCODED && /[^\w.~-]/.test(secret) && /[%+\\]/.test(clean))
      clean = clean.replace(encoded(secret), "[redacted]");
  }
  clean = clean.replace(shapes, "[redacted]");
  if (clean.includes("://") && clean.includes("@")) clean = clean.replace(passwords, "[redacted]");
  return clean;
}

// Each character as it is, or percent-encoded, or after a backslash; a space may be a plus.
function encoded(secret: string): RegExp {
  const characters = [...secret].map((character) => {
    const bytes = [...new TextEncoder().encode(character)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`);
    return `(?:${RegExp.escape(character)}|${bytes.join("")}${/["\\/]/.test(character) ? `|\\\\${RegExp.escape(character)}` : ""}${character === " " ? "|\\+" : ""})`;
  });
  return new RegExp(characters.join(""), "gi");
}

/** The texts of a configuration that may be secrets, by their names, and what they are in base64. */
export function secretsIn(value: unknown, name = ""): string[] {
  if (typeof value === "string")
    return /secret|token|key|password|credential|auth/i.test(name)
      ? [value, Buffer.from(value).toString("base64")]
      : [];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((each) => secretsIn(each, name));
  return Object.entries(value).flatMap(([key, each]) => secretsIn(each, `${name}.${key}`));
}
