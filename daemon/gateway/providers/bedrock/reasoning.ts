// `reasoning_effort` in the words of each family of models at Bedrock.
import type { ChatRequest, ReasoningEffort } from "#daemon/gateway/format/request.ts";
import { claudeTraits } from "../anthropic/models.ts";
import { claudeThinking } from "../anthropic/thinking.ts";
import { lacksThinking } from "../thoughts/claude.ts";
import type { ConverseTurn } from "./messages.ts";
import { isClaude, isGpt, isNova2, isOpenWeight } from "./models.ts";

/** What an answer may have beside the thinking where the request does not say. */
export const DEFAULT_ANSWER = 4096;

export interface Reasoning {
  readonly fields?: Record<string, unknown>;
  /** `maxTokens`, where thinking takes of them. */
  readonly total?: number | undefined;
  readonly dropped: string[];
}

/** `forced`: the model has to call a tool. */
export function reasoning(
  request: ChatRequest,
  model: string,
  turns: readonly ConverseTurn[],
  forced: boolean,
): Reasoning {
  const effort = request.reasoning_effort;
  if (!effort) return { dropped: [] };
  if (isOpenWeight(model)) {
    const said =
      effort === "none" || effort === "minimal" ? "low" : effort === "xhigh" || effort === "max" ? "high" : effort;
    return { fields: { reasoning_effort: said }, dropped: effort === "none" ? ["reasoning_effort"] : [] };
  }
  if (isGpt(model)) return { fields: { reasoning: { effort: effort === "minimal" ? "low" : effort } }, dropped: [] };
  if (isNova2(model)) {
    const said = novaEffort(effort);
    return {
      fields: { reasoningConfig: said ? { type: "enabled", maxReasoningEffort: said } : { type: "disabled" } },
      dropped: [],
    };
  }
  if (!isClaude(model)) return { dropped: [] };
  const bare = lacksThinking(turns.map(({ role, content }) => ({ role, blocks: content.map(kindOf) })));
  const answer = request.max_completion_tokens ?? request.max_tokens ?? DEFAULT_ANSWER;
  const thinking = claudeThinking(effort, claudeTraits(model), { forced, bare }, answer);
  const fields = {
    ...(thinking.field ? { thinking: thinking.field } : {}),
    ...(thinking.effort ? { output_config: { effort: thinking.effort } } : {}),
  };
  const some = Object.keys(fields).length > 0;
  return { ...(some ? { fields } : {}), total: thinking.total, dropped: [...thinking.dropped] };
}

/** Nova has three levels, or none. */
export function novaEffort(effort: ReasoningEffort | null | undefined): "low" | "medium" | "high" | null {
  if (!effort || effort === "none") return null;
  if (effort === "minimal" || effort === "low") return "low";
  return effort === "medium" ? "medium" : "high";
}

function kindOf(block: Record<string, unknown>) {
  if ("reasoningContent" in block) return "thinking";
  if ("toolUse" in block) return "call";
  return "toolResult" in block ? "result" : "other";
}
