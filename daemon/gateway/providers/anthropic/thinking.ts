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
  /** With thinking on a budget: tokens of the answer and of the thinking together. */
  readonly total?: number;
  readonly dropped: readonly string[];
}

/** The least that thinking takes. */
const LEAST_BUDGET = 1024;

/**
 * Tokens of a thinking answer in all, and those of them that are for thinking; null where the model thinks on no budget. No answer is
 * longer than the model's longest, and thinking has to leave room in it.
 */
export function thinkingRoom(
  effort: unknown,
  traits: ClaudeTraits,
  answer: number,
): { readonly total: number; readonly budget: number } | null {
  if (traits.thinking !== "budget" || typeof effort !== "string" || !Object.hasOwn(budgets, effort)) return null;
  const wanted = budgets[effort as keyof typeof budgets];
  const total = Math.max(answer, Math.min(answer + wanted, traits.maxOutput));
  return { total, budget: Math.max(total - answer, LEAST_BUDGET) };
}

/** True where the answer will think, and so is to be given what was thought before. */
export function claudeThinks(effort: ReasoningEffort | null | undefined, traits: ClaudeTraits): boolean {
  if (traits.noThinking === null) return true;
  return effort ? effort !== "none" : traits.thinksUnasked;
}

/** Of the services' betas: what was thought after other words is passed over, where the request would be refused else. */
export const BINDING_BETA = "thinking-binding-controls-2026-08-01";

/** The request's `thinking` where thinking goes back to a model that binds it. */
export function unbound(field: Record<string, unknown> | undefined): Record<string, unknown> {
  return { ...(field ?? { type: "adaptive" }), block_binding: { prefix_mismatch_behavior: "drop_block" } };
}

/** What keeps a turn from thinking. */
export interface Held {
  /** A tool is forced. */
  readonly forced: boolean;
  /** The calls that the request goes on with came without their thinking, which a budget demands. */
  readonly bare: boolean;
}

/** `answer`: the tokens that the answer itself may have. */
export function claudeThinking(
  effort: ReasoningEffort,
  traits: ClaudeTraits,
  { forced, bare }: Held,
  answer: number,
): Thinking {
  if (traits.thinking === "none") return { dropped: [] };
  if (traits.thinking === "adaptive") {
    if (effort === "none") {
      return traits.noThinking
        ? { field: { type: traits.noThinking }, dropped: [] }
        : { effort: "low", dropped: ["reasoning_effort"] };
    }
    const said = effort === "minimal" ? "low" : effort === "xhigh" && !traits.xhigh ? "high" : effort;
    return forced
      ? { effort: said, dropped: [] }
      : { field: { type: "adaptive", display: "summarized" }, effort: said, dropped: [] };
  }
  if (effort === "none") return { dropped: [] };
  if (forced || bare) return { dropped: ["reasoning_effort"] };
  const room = thinkingRoom(effort, traits, answer);
  if (!room) return { dropped: [] };
  return { field: { type: "enabled", budget_tokens: room.budget }, total: room.total, dropped: [] };
}
