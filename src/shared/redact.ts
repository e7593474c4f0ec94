// Keeps secrets out of what is written down. Callers redact by name; this catches what slips through by shape. A gateway token's id, which
// logs and audit have to name, begins as its secret does.
const shapes =
  /\b(?:(?:sk|gt(?!_[0-9a-hjkmnp-tv-z]{26}\b)|mt|cs|whsec|gh[po]|xox[abp])[-_][A-Za-z0-9_+/=-]{12,}|AKIA[A-Z0-9]{16}\b|Bearer\s+[A-Za-z0-9._~+/=-]{8,})/g;
/** JWTs. Of a run of their characters only the first place is tried where one may begin: all of them end with the run, and a log line may be nothing else. */
const jwts = /(?<![\w-])(?=((?:[\w-]*?-)??eyJ))\1[\w-]{10,}\.[\w-]+\.[\w-]*/g;
/** The password of a URL; a quote ends it where it ends a text of JSON, whose next member may hold an @. Looked for only where there is a URL with one: looking behind costs at every character. */
const passwords = /(?<=:\/\/[^\s:/@"]{0,200}:)(?:\\.|[^\s@/"\\]|"(?![,:\]}]))+(?=@)/g;

/** Of longer ones no pattern is made; a key in PEM has 3,000 characters. */
const MAX_ENCODED = 16_000;

/** The text with everything that has the shape of a credential replaced, and what is `known` however an address, JSON or HTML writes it. */
export function redactText(text: string, known: readonly string[] = []): string {
  return redactor(known)(text);
}

/** The same for many texts. */
export function redactor(known: readonly string[] = []): (text: string) => string {
  const hide = hiding(known, 6);
  return (text) => {
    const shaped = hide(text).replace(shapes, "[redacted]");
    const clean = shaped.includes("eyJ") ? shaped.replace(jwts, hideBehind) : shaped;
    return clean.includes("://") && clean.includes("@") ? clean.replace(passwords, "[redacted]") : clean;
  };
}

function hideBehind(_: string, begin: string): string {
  return `${begin.slice(0, -"eyJ".length)}[redacted]`;
}

/** What takes secrets of so many characters out of a text, however an address, JSON or HTML writes them. For many texts: a pattern costs more than to look for it. */
export function hiding(secrets: Iterable<string>, shortest: number): (text: string) => string {
  // Who quotes a key in PEM leaves out its last line's end. The longest first: one may be the beginning of another.
  const known = [...secrets].map((secret) => secret.trim()).filter((secret) => secret.length >= shortest);
  const hiders = known.sort((a, b) => b.length - a.length).map(hider);
  return (text) => {
    const encoded = /[%+\\&]/.test(text);
    const clean = hiders.reduce((rest, hide) => hide(rest, encoded), text);
    return encoded ? clean.replace(SPELLED, (run) => heard(run, hiders)) : clean;
  };
}

/** A character that is spelled out, and so many of them that letters and digits are too: no secret's form does that, and no pattern looks for it. */
const CHARACTER = /%(?:25){0,3}([\da-f]{2})|\\u([\da-f]{4})|&(?:amp;){0,3}#(?:x([\da-f]{2,6})|(\d{2,7}));/gi;
const SPELLED = new RegExp(`(?:${CHARACTER.source}){6,}`, "gi");

function heard(run: string, hiders: readonly Hider[]): string {
  const text = run.replace(CHARACTER, (_, ...found: string[]) => {
    const [byte, unit, hex, decimal] = found;
    const code = decimal ? Number(decimal) : Number.parseInt(byte ?? unit ?? hex ?? "", 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : "";
  });
  const clean = hiders.reduce((rest, hide) => hide(rest, false), text);
  return clean === text ? run : clean;
}

type Hider = (text: string, encoded: boolean) => string;

function hider(secret: string): Hider {
  const alike = !/[^\w.~-]/.test(secret);
  let pattern: RegExp | undefined;
  return (text, encoded) => {
    // No other form is shorter.
    if (text.length < secret.length) return text;
    const clean = text.replaceAll(secret, "[redacted]");
    if (alike || !encoded) return clean;
    if (secret.length > MAX_ENCODED) return clean.replaceAll(JSON.stringify(secret).slice(1, -1), "[redacted]");
    pattern ??= patternOf(secret);
    return clean.replace(pattern, "[redacted]");
  };
}

/** A value of JSON with every text of it cleaned, members' names too; a number that is not clean becomes a text. */
export function cleanWithin(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (typeof value === "number") {
    const text = clean(String(value));
    return text === String(value) ? value : text;
  }
  if (Array.isArray(value)) return value.map((one) => cleanWithin(one, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [clean(name), cleanWithin(one, clean)]));
}

/** Of secrets that were looked for last, since making a pattern takes longer than searching a line for it: so many, and none that is long. */
const patterns = new Map<string, RegExp>();
const MAX_PATTERNS = 500;
const MAX_KEPT = 4_000;

function patternOf(secret: string): RegExp {
  const known = patterns.get(secret);
  if (known) return known;
  const pattern = encoded(secret);
  if (secret.length > MAX_KEPT) return pattern;
  if (patterns.size >= MAX_PATTERNS) patterns.clear();
  patterns.set(secret, pattern);
  return pattern;
}

/** A sign of an address within an address, three times over; and so the sign of an entity. */
const PERCENT = "%(?:25){0,3}";
const AMPERSAND = "&(?:amp;){0,3}";
/** By the names that encoders give them; all of them have a number, too. */
const entities: Readonly<Record<string, string>> = {
  "&": "amp",
  "<": "lt",
  ">": "gt",
  '"': "quot",
  "'": "apos",
  "+": "plus",
  "/": "sol",
  "=": "equals",
};

// Each character as it is, or percent-encoded, or as JSON escapes it (\n, \/, \u00e9), or as an entity (&#43;, &#x2F;, &amp;); a space may be a plus.
function encoded(secret: string): RegExp {
  const forms = new Map<string, string>();
  for (const character of new Set(secret)) {
    const bytes = [...new TextEncoder().encode(character)].map(
      (byte) => `${PERCENT}${byte.toString(16).padStart(2, "0")}`,
    );
    const units = Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    );
    const escaped = [JSON.stringify(character).slice(1, -1), `\\${character}`, units.join("")].map(RegExp.escape);
    // Each once: the same way twice makes the search of what nearly is the secret double with every such character.
    const written = new Set([RegExp.escape(character), bytes.join("")]);
    if (!/\w/.test(character)) for (const form of [...escaped, entityOf(character)]) written.add(form);
    forms.set(character, `(?:${[...written, ...(character === " " ? ["\\+"] : [])].join("|")})`);
  }
  return new RegExp([...secret].map((character) => forms.get(character)).join(""), "gi");
}

function entityOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const name = entities[character];
  return `${AMPERSAND}(?:#0*${code}|#x0*${code.toString(16)}${name ? `|${name}` : ""});`;
}

const SECRET = /secret|token|key|password|credential|auth(?!or)/i;
/** Members that say how something is done, or what a record is told apart by, also where they lie among secrets. */
const PLAIN = /(?:type|method|title|scopes?)$|^(?:primary|cursor|sort|order|partition|foreign)_?keys?$/i;

/** Bytes; what a shorter one is in base64 or hex is found in half of all words. */
const SHORTEST_WITHIN = 4;

/** The secret, and what is always the same of a text in base64 or hex that holds it: as the `Basic` credentials of a logged request do. */
export function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret.trim());
  if (bytes.length < SHORTEST_WITHIN) return [secret];
  const base64 = [0, 1, 2].map((before) => base64Within(bytes, before));
  const hex = bytes.toString("hex");
  const forms = base64.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
  return [...new Set([secret, ...forms, hex, hex.toUpperCase()])];
}

/** Without the characters that belong in part to the `before` bytes before it, or to what may follow. */
function base64Within(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .replace(/=+$/, "");
  return text.slice(before === 0 ? 0 : before + 1, (before + bytes.length) % 3 === 0 ? undefined : -1);
}

/** The texts of a configuration that may be secrets, by their names, and what they are in base64 and hex. */
export function secretsIn(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value === "string")
    return path.some((name) => SECRET.test(name)) && !PLAIN.test(path.at(-1) ?? "") ? formsOf(value) : [];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((each) => secretsIn(each, path));
  return Object.entries(value).flatMap(([key, each]) => secretsIn(each, [...path, key]));
}
