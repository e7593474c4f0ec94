// Converse's usage and stop reasons. `inputTokens` excludes what the cache read and wrote.
import { fields, list, string } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import { count, filledUp, type TokenUsage, withParts } from "#daemon/gateway/format/usage.ts";

/** `more`: `additionalModelResponseFields`, where Claude says how much it thought. `guess` stands in for what was not counted. */
export function converseUsage(value: unknown, more: unknown, guess: () => TokenUsage): TokenUsage {
  const usage = fields(value);
  const kept = list(usage["cacheDetails"]).map(fields);
  const hourly = kept.filter(({ ttl }) => ttl === "1h").reduce((sum, one) => sum + count(one["inputTokens"]), 0);
  const output = count(usage["outputTokens"]);
  const details = fields(fields(fields(more)["usage"])["output_tokens_details"]);
  const reasoning = Math.min(count(details["thinking_tokens"]), output);
  const counted = withParts(
    {
      input: count(usage["inputTokens"]),
      cached: count(usage["cacheReadInputTokens"]),
      cache_write: count(usage["cacheWriteInputTokens"]),
      output: output - reasoning,
      reasoning,
    },
    { cache_write_1h: hourly },
  );
  return filledUp(counted, { prompt: usage["inputTokens"], completion: usage["outputTokens"] }, guess);
}

/** What the model said or called was not to be read: where nothing else came, that is no answer. */
export function isGivenUp(reason: unknown): boolean {
  return reason === "malformed_model_output" || reason === "malformed_tool_use";
}

/** `stopReason` in OpenAI's words. */
export function converseFinish(reason: unknown, jsonAnswered: boolean): FinishReason {
  switch (string(reason)) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_use":
      return jsonAnswered ? "stop" : "tool_calls";
    case "content_filtered":
    case "guardrail_intervened":
      return "content_filter";
    default:
      return "stop";
  }
}
