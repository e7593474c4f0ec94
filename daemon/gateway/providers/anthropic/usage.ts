// Anthropic's usage and stop reasons. `input_tokens` excludes what the cache read and wrote. `iterations` (compaction, server tools) hold
// what the totals leave out: the executor's are summed; an advisor's are billed at another model's rate and stay out; a turn served by
// a fallback has its totals right already.
import { fields, list, string } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import { count, filledUp, type TokenUsage, withParts } from "#daemon/gateway/format/usage.ts";

/** `guess` stands in for what was not counted. */
export function anthropicUsage(value: unknown, guess: () => TokenUsage): TokenUsage {
  const usage = fields(value);
  const counts = { prompt: usage["input_tokens"], completion: usage["output_tokens"] };
  const iterations = list(usage["iterations"]).map(fields);
  const executor = iterations.filter((one) => one["type"] === "message" || one["type"] === "compaction");
  if (executor.length > 0 && !iterations.some((one) => one["type"] === "fallback_message")) {
    counts.prompt = executor.reduce((sum, one) => sum + count(one["input_tokens"]), 0);
    counts.completion = executor.reduce((sum, one) => sum + count(one["output_tokens"]), 0);
  }
  const output = count(counts.completion);
  const reasoning = Math.min(count(fields(usage["output_tokens_details"])["thinking_tokens"]), output);
  const counted = withParts(
    {
      input: count(counts.prompt),
      cached: count(usage["cache_read_input_tokens"]),
      cache_write: count(usage["cache_creation_input_tokens"]),
      output: output - reasoning,
      reasoning,
    },
    { cache_write_1h: count(fields(usage["cache_creation"])["ephemeral_1h_input_tokens"]) },
  );
  const known = filledUp(counted, counts, guess);
  // A workspace may be bound to it: then no request says so.
  return usage["inference_geo"] === "us" ? { ...known, residency: true } : known;
}

/** Why Claude refused, of `stop_details`; empty for none. */
export function refusalIn(details: unknown): string {
  const { type, explanation } = fields(details);
  return type === "refusal" ? string(explanation) : "";
}

/** `stop_reason` in OpenAI's words. */
export function anthropicFinish(reason: unknown, jsonAnswered: boolean): FinishReason {
  switch (string(reason)) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_use":
      return jsonAnswered ? "stop" : "tool_calls";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}
