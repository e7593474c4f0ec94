// Keeps secrets out of what is written down. Callers redact by name; this catches what slips through by shape.
const shapes =
  /\b(?:sk|gt|mt|cs|whsec|ghp|gho|xox[abp])[-_][A-Za-z0-9_+/=-]{12,}|\bAKIA[A-Z0-9]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\bBearer\s+[A-Za-z0-9._~+/=-]{8,}/g;
/** The password of a URL. Looked for only where there is a URL with one: looking behind costs at every character. */
const passwords = /(?<=:\/\/[^\s:/@]{0,200}:)[^\s@/]+(?=@)/g;

/** Of longer ones no pattern is made; a key in PEM has 3,000 characters. */
const MAX_ENCODED = 16_000;

/** The text with everything that has the shape of a credential replaced, and what is `known` however an address or JSON writes it. */
export function redactText(text: string, known: readonly string[] = []): string {
  let clean = text;
  for (const each of known) {
    // Who quotes a key in PEM leaves out its last line's end.
    const secret = each.trim();
    if (secret.length < 6) continue;
    clean = clean.replaceAll(secret, "[redacted]");
    if (secret.length <= MAX_ENCODED && /[^\w.~-]/.test(secret) && /[%+\\]/.test(clean))
      clean = clean.replace(encoded(secret), "[redacted]");
  }
  clean = clean.replace(shapes, "[redacted]");
  if (clean.includes("://") && clean.includes("@")) clean = clean.replace(passwords, "[redacted]");
  return clean;
}

// Each character as it is, or percent-encoded, or as JSON escapes it (\n, \/, \u00e9); a space may be a plus.
function encoded(secret: string): RegExp {
  const forms = new Map<string, string>();
  for (const character of new Set(secret)) {
    const bytes = [...new TextEncoder().encode(character)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`);
    const units = Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    );
    const escaped = [JSON.stringify(character).slice(1, -1), `\\${character}`, units.join("")].map(RegExp.escape);
    const written = [RegExp.escape(character), bytes.join(""), ...(/\w/.test(character) ? [] : escaped)];
    forms.set(character, `(?:${[...written, ...(character === " " ? ["\\+"] : [])].join("|")})`);
  }
  return new RegExp([...secret].map((character) => forms.get(character)).join(""), "gi");
}

const SECRET = /secret|token|key|password|credential|auth(?!or)/i;
/** Members that say how something is done, or what a record is told apart by, also where they lie among secrets. */
const PLAIN = /(?:type|method|title|scopes?)$|^(?:primary|cursor|sort|order|partition|foreign)_?keys?$/i;

/** The texts of a configuration that may be secrets, by their names, and what they are in base64. */
export function secretsIn(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value === "string")
    return path.some((name) => SECRET.test(name)) && !PLAIN.test(path.at(-1) ?? "")
      ? [value, Buffer.from(value).toString("base64")]
      : [];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((each) => secretsIn(each, path));
  return Object.entries(value).flatMap(([key, each]) => secretsIn(each, [...path, key]));
}
