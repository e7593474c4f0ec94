// Model patterns of allow and deny lists: `*` stands for any run of characters. A pattern without a slash also fits the id alone.

export interface Pattern {
  readonly text: string;
  fits(provider: string, model: string): boolean;
}

/** @param anyCase for lists that forbid: some providers (Azure, Ollama) take a model's name in any case. */
export function modelPattern(text: string, { anyCase = false } = {}): Pattern {
  if (text === "*") return { text, fits: () => true };
  const expression = new RegExp(`^${text.split("*").map(RegExp.escape).join(".*")}$`, anyCase ? "si" : "s");
  const bare = !text.includes("/");
  return {
    text,
    fits: (provider, model) => expression.test(`${provider}/${model}`) || (bare && expression.test(model)),
  };
}

/** The first pattern that fits, or undefined. */
export function firstFit(patterns: readonly Pattern[], provider: string, model: string): Pattern | undefined {
  for (const pattern of patterns) if (pattern.fits(provider, model)) return pattern;
  return undefined;
}
