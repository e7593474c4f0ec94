// Model patterns of allow and deny lists: `*` stands for any run of characters. A pattern without a slash also fits the id alone.

export interface Pattern {
  readonly text: string;
  fits(provider: string, model: string): boolean;
}

/** @param anyCase for lists that forbid: some providers (Azure, Ollama) take a model's name in any case. */
export function modelPattern(text: string, { anyCase = false } = {}): Pattern {
  if (text === "*") return { text, fits: () => true };
  const cased = (name: string) => (anyCase ? name.toLowerCase() : name);
  const parts = cased(text).split("*");
  const bare = !text.includes("/");
  return {
    text,
    fits: (provider, model) => holds(parts, cased(`${provider}/${model}`)) || (bare && holds(parts, cased(model))),
  };
}

// Each part where it comes first. A regular expression would try all places of all of them: a pattern with ten stars would keep the daemon
// busy for ever, and controllers and tokens bring their own.
function holds(parts: readonly string[], name: string): boolean {
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return name === first;
  const end = name.length - last.length;
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}

/** The first pattern that fits, or undefined. */
export function firstFit(patterns: readonly Pattern[], provider: string, model: string): Pattern | undefined {
  for (const pattern of patterns) if (pattern.fits(provider, model)) return pattern;
  return undefined;
}
