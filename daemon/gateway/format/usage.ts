// Token usage: one partition for every provider, and OpenAI's form of it. Every provider counts differently (Anthropic's and
// Bedrock's input excludes what the cache read and wrote, Gemini's thoughts stand beside the candidates); adapters turn theirs
// into this one, so that no class is ever counted twice.

/** Disjoint classes: prompt = input + cached + cache_write; completion = output + reasoning. Never negative. */
export interface TokenUsage {
  /** Prompt tokens read neither from nor written to a cache. */
  readonly input: number;
  /** Prompt tokens read from the provider's cache. */
  readonly cached: number;
  /** Prompt tokens written to the provider's cache. */
  readonly cache_write: number;
  /** Answer tokens that are not reasoning. */
  readonly output: number;
  readonly reasoning: number;
  /** Parts of the classes above that some price lists charge otherwise; each at most its class. */
  readonly parts?: TokenParts | undefined;
  /** On which of its service tiers the provider says that it served; absent for the usual one. */
  readonly tier?: ServiceTier | undefined;
  /** The provider says that it served in one country, which its price list has a surcharge for: Claude's United States. */
  readonly residency?: boolean;
  /** True where the provider gave no figures and these are this gateway's guess. */
  readonly estimated?: boolean;
}

/** OpenAI's, beside the usual one. */
export const serviceTiers = ["flex", "priority", "scale", "ultrafast"] as const;
export type ServiceTier = (typeof serviceTiers)[number];
export type ShownTier = ServiceTier | "default";

/** The tier of a name. `fast` is OpenAI's newer name of `priority`, which its answers go on to say. */
export function tierNamed(name: unknown): ServiceTier | undefined {
  const tier = name === "fast" ? "priority" : name;
  return serviceTiers.find((one) => one === tier);
}

/** How OpenAI's answers name a tier of another wire's: the usual one is `default`, which Gemini calls `standard`. Undefined for one that they have not. */
export function shownTier(name: unknown): ShownTier | undefined {
  return name === "standard" || name === "default" ? "default" : tierNamed(name);
}

/** The usage with the tier that an answer names; the same object for the usual one, and for none. */
export function onTier(usage: TokenUsage, named: unknown): TokenUsage {
  const tier = tierNamed(named);
  return tier ? { ...usage, tier } : usage;
}

export interface TokenParts {
  /** Of `cache_write`: written to be kept for an hour. */
  readonly cache_write_1h?: number;
  /** Audio, of `input`, `cached` and `output`. */
  readonly input_audio?: number;
  readonly cached_audio?: number;
  readonly output_audio?: number;
  /** Images, of `output`. */
  readonly output_image?: number;
}

/** `usage` of a completion (OpenAI, "The chat completion object"), plus what it cost. */
export interface WireUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: {
    readonly cached_tokens: number;
    readonly audio_tokens: number;
    readonly cache_write_tokens?: number;
  };
  readonly completion_tokens_details: {
    readonly reasoning_tokens: number;
    readonly audio_tokens: number;
    readonly accepted_prediction_tokens: number;
    readonly rejected_prediction_tokens: number;
  };
  readonly cost_usd?: number | null;
}

export const noUsage: TokenUsage = { input: 0, cached: 0, cache_write: 0, output: 0, reasoning: 0 };

/** Tokens of the prompt: the sum of its three classes. */
export function promptTokens(usage: TokenUsage): number {
  return usage.input + usage.cached + usage.cache_write;
}

/** Tokens of the answer, reasoning included. */
export function completionTokens(usage: TokenUsage): number {
  return usage.output + usage.reasoning;
}

/** OpenAI's form; `cost` is left out when undefined, null when it is unknown. */
export function wireUsage(usage: TokenUsage, cost?: number | null): WireUsage {
  const prompt = promptTokens(usage);
  const completion = completionTokens(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: usage.cached,
      audio_tokens: (usage.parts?.input_audio ?? 0) + (usage.parts?.cached_audio ?? 0),
      ...(usage.cache_write > 0 ? { cache_write_tokens: usage.cache_write } : {}),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning,
      audio_tokens: usage.parts?.output_audio ?? 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...(cost === undefined ? {} : { cost_usd: cost }),
  };
}

/** Tokens of prompt and answer as OpenAI's form has them, one of them by the total where it is missing; null where one is known by neither. */
export function countsOf(usage: Readonly<Record<string, unknown>>): { prompt: number; completion: number } | null {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  if (isCount(prompt) && isCount(completion)) return { prompt: count(prompt), completion: count(completion) };
  const known = isCount(prompt) ? prompt : completion;
  if (!isCount(known) || !isCount(total) || total < known) return null;
  const rest = count(total) - count(known);
  return isCount(prompt) ? { prompt: count(known), completion: rest } : { prompt: rest, completion: count(known) };
}

/**
 * Reads OpenAI's form (untrusted: an upstream sent it). Details never exceed their total. Null when it lacks a count. `thoughtsInTotal`: what the total
 * has beyond prompt and answer was thought.
 */
export function usageFromWire(wire: unknown, thoughtsInTotal = false): TokenUsage | null {
  if (typeof wire !== "object" || wire === null) return null;
  const fields = wire as Record<string, unknown>;
  const counts = countsOf(fields);
  if (!counts) return null;
  const { prompt, completion } = counts;
  const promptDetails = (fields["prompt_tokens_details"] ?? {}) as Record<string, unknown>;
  const completionDetails = (fields["completion_tokens_details"] ?? {}) as Record<string, unknown>;
  const cached = Math.min(count(promptDetails["cached_tokens"]) || cachedBeside(fields), prompt);
  // Alibaba's Qwen has Anthropic's name for it.
  const write = count(promptDetails["cache_write_tokens"]) || count(promptDetails["cache_creation_input_tokens"]);
  const written = Math.min(write, prompt - cached);
  const thought = count(completionDetails["reasoning_tokens"]);
  // xAI counts reasoning beside completion_tokens: then the total says so.
  const rest = count(fields["total_tokens"]) - prompt - completion;
  const beside = rest > 0 && (rest === thought || (thought === 0 && thoughtsInTotal));
  const reasoning = beside ? rest : Math.min(thought, completion);
  return withParts(
    {
      input: prompt - cached - written,
      cached,
      cache_write: written,
      output: beside ? completion : completion - reasoning,
      reasoning,
    },
    { input_audio: count(promptDetails["audio_tokens"]), output_audio: count(completionDetails["audio_tokens"]) },
  );
}

/** What Moonshot and Together (`cached_tokens`), DeepSeek (`prompt_cache_hit_tokens`) and Mistral say of the cache outside of the details. */
export function cachedBeside(usage: Readonly<Record<string, unknown>>): number {
  const details = usage["prompt_token_details"] as Record<string, unknown> | null | undefined;
  for (const name of ["cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens"])
    if (count(usage[name]) > 0) return count(usage[name]);
  return count(details?.["cached_tokens"]);
}

/** The usage with a guess in place of a side that the provider did not count, or of both. */
export function filledUp(
  usage: TokenUsage,
  counts: { readonly prompt: unknown; readonly completion: unknown },
  guess: () => TokenUsage,
): TokenUsage {
  const prompt = isCount(counts.prompt);
  const completion = isCount(counts.completion);
  if (prompt && completion) return usage;
  const guessed = guess();
  if (!prompt && !completion) return guessed;
  if (prompt) return { ...usage, output: guessed.output, reasoning: guessed.reasoning, estimated: true };
  return { ...usage, input: Math.max(0, guessed.input - usage.cached - usage.cache_write), estimated: true };
}

const classOf = {
  cache_write_1h: "cache_write",
  input_audio: "input",
  cached_audio: "cached",
  output_audio: "output",
  output_image: "output",
} as const satisfies Record<keyof TokenParts, keyof TokenUsage>;

/** The usage with those parts that are not zero, none larger than its class. The same object where there are none. */
export function withParts(usage: TokenUsage, given: Required<TokenParts> | TokenParts): TokenUsage {
  const parts: Partial<Record<keyof TokenParts, number>> = {};
  for (const name of Object.keys(given) as (keyof TokenParts)[]) {
    const part = Math.min(given[name] ?? 0, usage[classOf[name]]);
    if (part > 0) parts[name] = part;
  }
  return Object.keys(parts).length > 0 ? { ...usage, parts } : usage;
}

/** More tokens than any call has: what an upstream counts beyond is nonsense, and no sum of such would fit into a column. */
const MOST_TOKENS = 1e9;

/** Whether a value of an upstream's JSON can be a number of tokens. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MOST_TOKENS;
}

/** A token count from an upstream's JSON; what can be none counts as 0. */
export function count(value: unknown): number {
  return isCount(value) ? Math.floor(value) : 0;
}
