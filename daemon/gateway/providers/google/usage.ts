// Gemini's usage, finish reasons and log probabilities. The prompt's count includes what was cached; thoughts stand beside the candidates.
import { fields, list, string } from "#contract/json-object.ts";
import type { FinishReason, Logprobs } from "#daemon/gateway/format/completion.ts";
import { count, isCount, onTier, type TokenUsage, withParts } from "#daemon/gateway/format/usage.ts";
import { UNLIKELY } from "../openai/logprobs.ts";

/** Null where `usageMetadata` has no counts (Vertex sends it with nothing but the traffic's type). */
export function googleUsage(value: unknown): TokenUsage | null {
  const usage = fields(value);
  const { promptTokenCount: asked, candidatesTokenCount: answered, totalTokenCount: total } = usage;
  if (!isCount(asked) && !isCount(answered)) return null;
  const reasoning = count(usage["thoughtsTokenCount"]);
  const byTools = count(usage["toolUsePromptTokenCount"]);
  // Of the two the total tells the one that is missing.
  const rest = Math.max(0, count(total) - count(asked) - count(answered) - byTools - reasoning);
  const prompt = byTools + (isCount(asked) ? count(asked) : rest);
  const output = isCount(answered) ? count(answered) : rest;
  const cached = Math.min(count(usage["cachedContentTokenCount"]), prompt);
  const cachedAudio = tokensOf("AUDIO", usage["cacheTokensDetails"]);
  const counted = withParts(
    {
      input: prompt - cached,
      cached,
      cache_write: 0,
      output,
      reasoning,
    },
    {
      input_audio: Math.max(0, tokensOf("AUDIO", usage["promptTokensDetails"]) - cachedAudio),
      cached_audio: cachedAudio,
      output_audio: tokensOf("AUDIO", usage["candidatesTokensDetails"]),
      output_image: tokensOf("IMAGE", usage["candidatesTokensDetails"]),
    },
  );
  return onTier(counted, usage["serviceTier"]);
}

// `[{modality: "TEXT" | "AUDIO" | ..., tokenCount}]`
function tokensOf(kind: "AUDIO" | "IMAGE", details: unknown): number {
  return list(details)
    .map(fields)
    .filter(({ modality }) => modality === kind)
    .reduce((sum, one) => sum + count(one["tokenCount"]), 0);
}

/** The model meant to call a tool and did not get it right: where nothing else came, that is no answer. */
export function isGivenUp(reason: unknown): boolean {
  return /^(MALFORMED_\w+|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE)$/.test(string(reason));
}

/** `finishReason` in OpenAI's words: STOP with calls present is `tool_calls`. */
export function googleFinish(reason: unknown, called: boolean): FinishReason {
  switch (string(reason)) {
    case "MAX_TOKENS":
    case "CONTINUATION":
      return "length";
    case "SAFETY":
    case "RECITATION":
    case "BLOCKLIST":
    case "PROHIBITED_CONTENT":
    case "SPII":
    case "IMAGE_SAFETY":
    case "IMAGE_PROHIBITED_CONTENT":
    case "IMAGE_RECITATION":
    case "LANGUAGE":
    case "MODEL_ARMOR":
      return "content_filter";
    default:
      return called ? "tool_calls" : "stop";
  }
}

/** `logprobsResult` as OpenAI's log probabilities; null where there is none. */
export function googleLogprobs(value: unknown): Logprobs | null {
  const chosen = list(fields(value)["chosenCandidates"]).map(fields);
  if (chosen.length === 0) return null;
  const tops = list(fields(value)["topCandidates"]).map((one) => list(fields(one)["candidates"]).map(fields));
  const entry = (one: Record<string, unknown>) => ({
    token: string(one["token"]),
    logprob: typeof one["logProbability"] === "number" ? one["logProbability"] : UNLIKELY,
    bytes: [...Buffer.from(string(one["token"]))],
  });
  const content = chosen.map((one, at) => ({ ...entry(one), top_logprobs: (tops[at] ?? []).map(entry) }));
  return { content, refusal: null };
}
