// OpenAI's reasoning effort as Claude's thinking, on the Messages API and on Bedrock alike.
import type { ReasoningEffort } from "#daemon/gateway/format/request.ts";
import type { ClaudeTraits } from "./models.ts";

const budgets: Readonly<Record<Exclude<ReasoningEffort, "none">, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_000,
  max: 32_000,
};

export interface Thinking {
  /** The request's `thinking`. */
  readonly field?: Record<string, unknown>;
  /** `output_config.effort`. */
  readonly effort?: string;
  /** Tokens that come on top of the answer's. */
  readonly budget?: number;
  readonly dropped: readonly string[];
}

/** Tokens that thinking may take on top of the answer's. */
export function thinkingBudget(effort: unknown, traits: ClaudeTraits): number {
  if (traits.thinking !== "budget" || typeof effort !== "string" || !Object.hasOwn(budgets, effort)) return 0;
  return budgets[effort as keyof typeof budgets];
}

/** What keeps a turn from thinking. */
export interface Held {
  /** A tool is forced. */
  readonly forced: boolean;
  /** The calls that the request goes on with came without their thinking, which a budget demands. */
  readonly bare: boolean;
}

export function claudeThinking(effort: ReasoningEffort, traits: ClaudeTraits, { forced, bare }: Held): Thinking {
  if (traits.thinking === "none") return { dropped: [] };
  if (traits.thinking === "adaptive") {
    if (effort === "none") {
      return traits.canStopThinking ? { field: { type: "disabled" }, dropped: [] } : { effort: "low", dropped: [] };
    }
    const said = effort === "minimal" ? "low" : effort === "xhigh" && !traits.xhigh ? "high" : effort;
    return forced
      ? { effort: said, dropped: [] }
      : { field: { type: "adaptive", display: "summarized" }, effort: said, dropped: [] };
  }
  if (effort === "none") return { dropped: [] };
  if (forced || bare) return { dropped: ["reasoning_effort"] };
  const budget = budgets[effort];
  return { field: { type: "enabled", budget_tokens: budget }, budget, dropped: [] };
}
