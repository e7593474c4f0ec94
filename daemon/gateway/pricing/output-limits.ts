// How long an answer a model can give, for the reservation of budgets and for wires that demand a `max_tokens`. The price list does
// not have it. By the beginning of the model's name, the longest match wins; from the vendors' model pages.
const limits: readonly (readonly [prefix: string, tokens: number])[] = [
  ["gpt-3.5", 4_096],
  ["gpt-4", 8_192],
  ["gpt-4-turbo", 4_096],
  ["gpt-4o", 16_384],
  ["gpt-4.1", 32_768],
  ["gpt-5", 128_000],
  ["gpt-6", 128_000],
  ["gpt-chat-latest", 128_000],
  ["gpt-audio", 16_384],
  ["gpt-oss", 65_536],
  ["chatgpt-4o", 16_384],
  ["codex-mini", 100_000],
  ["o1", 100_000],
  ["o3", 100_000],
  ["o4", 100_000],
  // Those since 4.6, and what will follow.
  ["claude", 128_000],
  ["claude-2", 4_096],
  ["claude-instant", 4_096],
  ["claude-3-haiku", 4_096],
  ["claude-3-opus", 4_096],
  ["claude-3-sonnet", 4_096],
  ["claude-3-5", 8_192],
  ["claude-3-7", 64_000],
  ["claude-haiku-4", 64_000],
  ["claude-sonnet-4", 64_000],
  ["claude-opus-4", 32_000],
  ["claude-opus-4-5", 64_000],
  ["claude-opus-4-6", 128_000],
  ["claude-opus-4-7", 128_000],
  ["claude-opus-4-8", 128_000],
  ["claude-sonnet-4-6", 128_000],
  ["gemini", 65_536],
  ["gemini-1.5", 8_192],
  ["gemini-2.0", 8_192],
  ["nova-", 10_000],
  ["nova-2-", 65_536],
  ["deepseek-chat", 8_192],
  ["deepseek-reasoner", 65_536],
  ["deepseek-flash", 384_000],
  ["deepseek-v4", 384_000],
  ["r1-", 32_768],
];

/** What is reserved for a model that nobody knows and a request that names no `max_tokens`. */
export const UNKNOWN_MODEL_OUTPUT = 4_096;

/** The model's largest answer in tokens, or undefined. */
export function maxOutputTokens(model: string): number | undefined {
  const name = ownName(model);
  let best: readonly [string, number] | undefined;
  for (const limit of limits) if (name.startsWith(limit[0]) && limit[0].length > (best?.[0].length ?? 0)) best = limit;
  return best?.[1];
}

// What others put before it is looked through: resellers and ARNs (`anthropic/`), Bedrock (`us.anthropic.`), OpenAI (`ft:`). Some write
// Claude's versions with a point.
function ownName(model: string): string {
  const last = model.slice(model.lastIndexOf("/") + 1);
  const name = last.replace(/^(?:ft:|(?:[a-z-]+\.)?(?:anthropic|openai|google|amazon|deepseek)\.)/, "");
  return name.startsWith("claude") ? name.replaceAll(".", "-") : name;
}
