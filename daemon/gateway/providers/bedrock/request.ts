// OpenAI's request as a Converse request.
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Notes, Target, Unsupported } from "../adapter.ts";
import { claudeTraits } from "../anthropic/models.ts";
import { claudeRefusals } from "../anthropic/refusals.ts";
import { claudeThinking } from "../anthropic/thinking.ts";
import { stopsOf, toolPlan } from "../content.ts";
import { supportOf } from "../support.ts";
import type { WireIo } from "../wire.ts";
import { type ConverseTurn, converseMessages } from "./messages.ts";

/** The tool that stands for the answer: Converse keeps no schemas by itself. */
export const JSON_TOOL = "json_answer";

export interface ConverseRequest {
  readonly body: Record<string, unknown>;
  readonly notes: Notes;
  readonly jsonTool: string | undefined;
}

/** The table's refusals, and what this model refuses beyond them. */
export function bedrockUnsupported(request: ChatRequest, model: string): readonly Unsupported[] {
  const found = [...supportOf("bedrock", request)];
  const effort = request.reasoning_effort;
  if (isClaude(model)) found.push(...claudeRefusals(request, claudeTraits(model)));
  else if (effort && effort !== "none" && !model.includes("gpt-oss")) {
    found.push({ param: "reasoning_effort", reason: "this model cannot be told how to reason", droppable: true });
  }
  if (request.tool_choice === "none" && request.messages.some((one) => one.role === "tool")) {
    const reason = "it cannot be kept from calling tools in a conversation that has used some";
    found.push({ param: "tool_choice", reason, droppable: true });
  }
  return found;
}

/** Throws UpstreamError (`invalid`) for what cannot be said. */
export async function converseRequest(given: ChatRequest, target: Target, io: WireIo): Promise<ConverseRequest> {
  const request = modern(given);
  const { system, turns } = await converseMessages(request, io);
  if (turns.length === 0) turns.push({ role: "user", content: system.splice(0) });
  const wanted = request.response_format;
  const schema = wanted?.type === "json_schema" ? (wanted.json_schema.schema ?? { type: "object" }) : undefined;
  if (wanted?.type === "json_object") {
    system.push({ text: "Answer with one JSON object and nothing else: no prose, no code fence." });
  }
  const toolConfig = toolsOf(request, turns, schema);
  const { fields, budget, dropped } = reasoning(request, target.model, turns, forces(toolConfig));
  const stops = stopsOf(request);
  const most = request.max_completion_tokens ?? request.max_tokens;
  const inferenceConfig = {
    ...(most ? { maxTokens: most + budget } : budget > 0 ? { maxTokens: budget + 4096 } : {}),
    ...(typeof request.temperature === "number" && budget === 0 ? { temperature: request.temperature } : {}),
    ...(typeof request.top_p === "number" ? { topP: request.top_p } : {}),
    ...(stops.length > 0 ? { stopSequences: stops } : {}),
  };
  const body = {
    messages: turns,
    ...(system.length > 0 ? { system } : {}),
    ...(Object.keys(inferenceConfig).length > 0 ? { inferenceConfig } : {}),
    ...(toolConfig ? { toolConfig } : {}),
    ...(fields ? { additionalModelRequestFields: fields } : {}),
  };
  const responseFormat = wanted && wanted.type !== "text" ? ("emulated" as const) : undefined;
  return { body, notes: { dropped, responseFormat }, jsonTool: schema ? JSON_TOOL : undefined };
}

function isClaude(model: string): boolean {
  return model.includes("anthropic") || model.includes("claude");
}

function toolsOf(
  request: ChatRequest,
  turns: readonly ConverseTurn[],
  schema: object | undefined,
): { tools: object[]; toolChoice?: object } | undefined {
  const plan = toolPlan(request);
  const spec = (name: string, description: string | undefined, json: unknown) => ({
    toolSpec: { name, ...(description ? { description } : {}), inputSchema: { json } },
  });
  const given = plan.choice?.mode === "none" ? [] : plan.tools;
  const tools = given.map((tool) =>
    spec(tool.name, tool.description, tool.parameters ?? { type: "object", properties: {} }),
  );
  if (schema) {
    const description = "Give the final answer by calling this tool.";
    tools.push(spec(JSON_TOOL, description, { type: "object", ...schema }));
    return { tools, toolChoice: given.length > 0 ? { any: {} } : { tool: { name: JSON_TOOL } } };
  }
  // A conversation that has used tools is refused without any: name those of its past.
  if (tools.length === 0) {
    const past = new Set(
      turns.flatMap((turn) => turn.content.map((block) => (block["toolUse"] as { name?: string })?.name)),
    );
    for (const name of past) if (name) tools.push(spec(name, undefined, { type: "object" }));
    return tools.length > 0 ? { tools } : undefined;
  }
  const { choice } = plan;
  if (choice?.mode === "named") return { tools, toolChoice: { tool: { name: choice.name } } };
  return { tools, toolChoice: choice?.mode === "required" ? { any: {} } : { auto: {} } };
}

function forces(toolConfig: { toolChoice?: object } | undefined): boolean {
  return toolConfig?.toolChoice !== undefined && !("auto" in toolConfig.toolChoice);
}

function reasoning(request: ChatRequest, model: string, turns: readonly ConverseTurn[], forced: boolean) {
  const effort = request.reasoning_effort;
  if (!effort) return { fields: undefined, budget: 0, dropped: [] };
  if (model.includes("gpt-oss")) {
    const said =
      effort === "none" || effort === "minimal" ? "low" : effort === "xhigh" || effort === "max" ? "high" : effort;
    return { fields: { reasoning_effort: said }, budget: 0, dropped: [] };
  }
  if (!isClaude(model)) return { fields: undefined, budget: 0, dropped: [] };
  const last = turns.findLast((turn) => turn.role === "assistant");
  const called = last?.content.some((block) => "toolUse" in block) ?? false;
  const thinking = claudeThinking(effort, claudeTraits(model), { forced, called });
  const fields = {
    ...(thinking.field ? { thinking: thinking.field } : {}),
    ...(thinking.effort ? { output_config: { effort: thinking.effort } } : {}),
  };
  const some = Object.keys(fields).length > 0;
  return { fields: some ? fields : undefined, budget: thinking.budget ?? 0, dropped: thinking.dropped };
}
