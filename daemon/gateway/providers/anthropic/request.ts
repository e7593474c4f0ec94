// OpenAI's request as Anthropic's Messages request.
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Notes, Target, Unsupported } from "../adapter.ts";
import { answerToolName, objectSchema, somePrompt, stopsOf, toolPlan } from "../content.ts";
import { supportOf } from "../support.ts";
import { type ClaudeThoughts, lacksThinking } from "../thoughts/claude.ts";
import { anthropicMessages, type Turn } from "./messages.ts";
import { type ClaudeTraits, claudeTraits } from "./models.ts";
import { claudeRefusals, claudeSampling } from "./refusals.ts";
import { keepsNatively, nativeSchema } from "./schema.ts";
import { claudeThinking, type Thinking, thinkingBudget } from "./thinking.ts";

export interface AnthropicRequest {
  readonly body: Record<string, unknown>;
  readonly notes: Notes;
  readonly jsonTool: string | undefined;
}

/** The table's refusals, and what this model refuses beyond them. */
export function anthropicUnsupported(request: ChatRequest, model: string): readonly Unsupported[] {
  return [...supportOf("anthropic", request), ...claudeRefusals(request, claudeTraits(model))];
}

/** Throws UpstreamError (`invalid`) for what cannot be said. */
export function anthropicRequest(given: ChatRequest, target: Target, thoughts: ClaudeThoughts): AnthropicRequest {
  const request = modern(given);
  const traits = claudeTraits(target.model);
  const { system, turns } = anthropicMessages(request, reasons(request, traits) ? thoughts : null);
  if (turns.length === 0) turns.push({ role: "user", content: somePrompt(system) });
  const { tools, toolChoice, jsonTool, format, responseFormat } = toolsOf(request, traits, system);
  const thinking = thinkingOf(
    request,
    traits,
    turns,
    toolChoice?.["type"] === "any" || toolChoice?.["type"] === "tool",
  );
  if (!thinking.field && traits.canStopThinking) for (const turn of turns) leaveOutThinking(turn);
  const stops = stopsOf(request);
  const effort =
    thinking.effort || format
      ? { output_config: { ...(thinking.effort ? { effort: thinking.effort } : {}), ...(format ? { format } : {}) } }
      : {};
  const budget = thinking.budget ?? 0;
  const user = request.user ?? request.safety_identifier;
  const { temperature, topP } = claudeSampling(request, traits.sampling);
  const body = {
    model: target.model,
    max_tokens: maxTokens(request, target, traits, budget),
    ...(system.length > 0 ? { system } : {}),
    messages: turns,
    ...(tools.length > 0 ? { tools } : {}),
    ...(toolChoice ? { tool_choice: toolChoice } : {}),
    ...(temperature === undefined || budget > 0 ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stops.length > 0 ? { stop_sequences: stops } : {}),
    ...(thinking.field ? { thinking: thinking.field } : {}),
    ...effort,
    ...(user ? { metadata: { user_id: user } } : {}),
    ...(request.stream ? { stream: true } : {}),
  };
  return { body, notes: { dropped: thinking.dropped, responseFormat }, jsonTool };
}

// Messages demands a `max_tokens`, and thinking is part of it.
function maxTokens(request: ChatRequest, target: Target, traits: ClaudeTraits, budget: number): number {
  const asked = request.max_completion_tokens ?? request.max_tokens;
  if (asked) return asked + budget;
  return Math.max(Math.min(target.maxOutputTokens ?? traits.maxOutput, 8192 + budget), 1);
}

/** The `max_tokens` of this request, should it think. */
export function anthropicLongest(request: ChatRequest, target: Target): number {
  const traits = claudeTraits(target.model);
  return maxTokens(request, target, traits, thinkingBudget(request.reasoning_effort, traits));
}

function toolsOf(request: ChatRequest, traits: ClaudeTraits, system: unknown[]) {
  const plan = toolPlan(request);
  const tools: Record<string, unknown>[] = plan.tools.map((tool) => ({
    name: tool.name,
    ...(tool.description ? { description: tool.description } : {}),
    input_schema: objectSchema(tool.parameters),
    ...(tool.strict && traits.nativeSchema ? { strict: true } : {}),
  }));
  const once = request.parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {};
  let toolChoice: Record<string, unknown> | undefined = plan.choice ? choiceOf(plan.choice, once) : undefined;
  const wanted = request.response_format;
  const schema = wanted?.type === "json_schema" ? (wanted.json_schema.schema ?? { type: "object" }) : undefined;
  if (wanted?.type === "json_object") {
    system.push({ type: "text", text: "Answer with one JSON object and nothing else: no prose, no code fence." });
    return { tools, toolChoice, jsonTool: undefined, format: undefined, responseFormat: "emulated" as const };
  }
  if (!schema) return { tools, toolChoice, jsonTool: undefined, format: undefined, responseFormat: undefined };
  if (traits.nativeSchema && keepsNatively(schema)) {
    const format = { type: "json_schema", schema: nativeSchema(schema) };
    return { tools, toolChoice, jsonTool: undefined, format, responseFormat: "native" as const };
  }
  const jsonTool = answerToolName(plan.tools);
  tools.push({
    name: jsonTool,
    description: "Give the final answer by calling this tool.",
    input_schema: objectSchema(schema),
  });
  toolChoice =
    plan.tools.length > 0
      ? { type: "any", ...once }
      : { type: "tool", name: jsonTool, disable_parallel_tool_use: true };
  return { tools, toolChoice, jsonTool, format: undefined, responseFormat: "emulated" as const };
}

function choiceOf(choice: NonNullable<ReturnType<typeof toolPlan>["choice"]>, once: object) {
  switch (choice.mode) {
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...once };
    case "named":
      return { type: "tool", name: choice.name, ...once };
    default:
      return { type: "auto", ...once };
  }
}

function thinkingOf(request: ChatRequest, traits: ClaudeTraits, turns: readonly Turn[], forced: boolean): Thinking {
  if (!request.reasoning_effort) return { dropped: [] };
  const bare = lacksThinking(turns.map(({ role, content }) => ({ role, blocks: content.map(kindOf) })));
  return claudeThinking(request.reasoning_effort, traits, { forced, bare });
}

function kindOf(block: unknown) {
  switch ((block as { type: string }).type) {
    case "thinking":
    case "redacted_thinking":
      return "thinking";
    case "tool_use":
      return "call";
    case "tool_result":
      return "result";
    default:
      return "other";
  }
}

function reasons(request: ChatRequest, traits: ClaudeTraits): boolean {
  return !traits.canStopThinking || Boolean(request.reasoning_effort && request.reasoning_effort !== "none");
}

// Thinking goes back only to an answer that reasons as well.
function leaveOutThinking({ content }: Turn): void {
  for (let at = content.length - 1; at >= 0; at--) if (kindOf(content[at]) === "thinking") content.splice(at, 1);
}
