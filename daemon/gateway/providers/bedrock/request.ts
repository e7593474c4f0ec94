// OpenAI's request as a Converse request.
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest, JsonSchema } from "#daemon/gateway/format/request.ts";
import type { Notes, Target, Unsupported } from "../adapter.ts";
import { type MemberNames, sentInput } from "../anthropic/member-names.ts";
import { type ClaudeTraits, claudeTraits } from "../anthropic/models.ts";
import { claudeRefusals, claudeSampling } from "../anthropic/refusals.ts";
import { nativeSchema, schemaKeeper } from "../anthropic/schema.ts";
import { BINDING_BETA, claudeThinks, thinkingRoom, unbound } from "../anthropic/thinking.ts";
import { answerSchema, demandsCall, jsonInstruction, somePrompt, stopsOf, toolPlan, undemanding } from "../content.ts";
import { ownTier, sharedTier, supportOf } from "../support.ts";
import type { ClaudeThoughts } from "../thoughts/claude.ts";
import { shortId } from "../tool-id.ts";
import type { WireIo } from "../wire.ts";
import { type ConverseTurn, converseId, converseMessages } from "./messages.ts";
import {
  callsOneByOne,
  forcesTools,
  hasNoTools,
  isBlind,
  isClaude,
  isGpt,
  isNova2,
  isOpenWeight,
  keepsSchemas,
  markFor,
  mixesResults,
} from "./models.ts";
import { DEFAULT_ANSWER, novaEffort, reasoning } from "./reasoning.ts";
import { forces, leaveFewMarks, toolsOf } from "./tools.ts";

export interface ConverseRequest {
  readonly body: Record<string, unknown>;
  readonly notes: Notes;
  readonly jsonTool: string | undefined;
  readonly memberNames: MemberNames;
}

/** The table's refusals, and what this model refuses beyond them. */
export function bedrockUnsupported(request: ChatRequest, model: string): readonly Unsupported[] {
  const can = (param: string) => param === "parallel_tool_calls" && callsOneByOne(model);
  const found = [...supportOf("bedrock", request), ...ownTier(request)].filter(({ param }) => !can(param));
  const effort = request.reasoning_effort;
  if (isClaude(model)) found.push(...claudeRefusals(request, claudeTraits(model)));
  else if (isNova2(model)) {
    const limits = [request.max_completion_tokens ?? request.max_tokens, request.temperature, request.top_p];
    if (novaEffort(effort) === "high" && limits.some((one) => one !== undefined && one !== null)) {
      const reason = "beside its highest effort this model takes no max_tokens, temperature or top_p";
      found.push({ param: "reasoning_effort", reason, droppable: true });
    }
  } else if (effort && effort !== "none" && !isGpt(model) && !isOpenWeight(model)) {
    found.push({ param: "reasoning_effort", reason: "this model cannot be told how to reason", droppable: true });
  }
  const choosing = request.tool_choice ? "tool_choice" : "function_call";
  if (!isClaude(model) && !forcesTools(model) && demandsCall(toolPlan(modern(request)))) {
    const reason = "this model cannot be made to call a tool";
    found.push({ param: choosing, reason, droppable: true, leftToVendor: true, instead: undemanding(request) });
  }
  const image = isBlind(model) ? imageIn(request) : null;
  if (image) found.push({ param: image, reason: "this model reads no images", droppable: false, leftToVendor: true });
  if (request.tools?.length && hasNoTools(model))
    found.push({ param: "tools", reason: "this model calls no tools", droppable: false, leftToVendor: true });
  const hasUsed = request.messages.some(({ role }) => role === "tool" || role === "function");
  // A tool that has to be called for the answer keeps it from all others.
  if (request[choosing] === "none" && hasUsed && wayOf(answerSchema(request), model, keeperFor(model)) !== "tool") {
    const reason = "it cannot be kept from calling tools in a conversation that has used some";
    found.push({ param: choosing, reason, droppable: true });
  }
  return found;
}

function imageIn({ messages }: ChatRequest): string | null {
  for (const [index, { content }] of messages.entries()) {
    const at = Array.isArray(content) ? content.findIndex(({ type }) => type === "image_url") : -1;
    if (at >= 0) return `messages[${index}].content[${at}]`;
  }
  return null;
}

function keeperFor(model: string): (schema: JsonSchema) => boolean {
  return keepsSchemas(model) ? schemaKeeper() : () => false;
}

/** How the answer is kept to its schema: by Bedrock, by a tool that has to be called, or as the model is told. */
function wayOf(schema: JsonSchema | null, model: string, keeps: (schema: JsonSchema) => boolean) {
  if (!schema) return null;
  if (keeps(schema)) return "native";
  return forcesTools(model) ? "tool" : "told";
}

/** With thinking on a budget `maxTokens` is that of the answer and of the thinking; else what the request or the model says. */
export function converseLongest(request: ChatRequest, { model }: Target): number {
  if (!isClaude(model)) return 0;
  const answer = request.max_completion_tokens ?? request.max_tokens ?? DEFAULT_ANSWER;
  return thinkingRoom(request.reasoning_effort, claudeTraits(model), answer)?.total ?? 0;
}

/** Throws UpstreamError (`invalid`) for what cannot be said. */
export async function converseRequest(
  given: ChatRequest,
  target: Target,
  io: WireIo,
  thoughts: ClaudeThoughts,
): Promise<ConverseRequest> {
  const request = modern(given);
  const idOf = target.model.includes("mistral.") ? shortId : converseId;
  const traits = isClaude(target.model) ? claudeTraits(target.model) : null;
  const thinks = traits ? claudeThinks(request.reasoning_effort, traits) : isGpt(target.model);
  const { system, turns } = await converseMessages(request, io, {
    thoughts: thinks ? thoughts : null,
    idOf,
    markOf: (mark) => markFor(mark, target.model),
    mixesResults: mixesResults(target.model),
  });
  if (turns.length === 0) turns.push({ role: "user", content: somePrompt(system) });
  const wanted = request.response_format;
  const schema = answerSchema(request);
  if (wanted?.type === "json_object") {
    system.push({ text: jsonInstruction() });
  }
  const keeps = keeperFor(target.model);
  const way = wayOf(schema, target.model, keeps);
  const native = way === "native";
  if (way === "told") system.push({ text: jsonInstruction(schema) });
  const forced = way === "tool" ? schema : null;
  const memberNames = new Map<string, ReadonlyMap<string, string>>();
  const { jsonTool, loose, ...toolConfig } = toolsOf(request, turns, forced, target.model, keeps, memberNames);
  for (const { content } of memberNames.size > 0 ? turns : []) {
    for (const { toolUse } of content) {
      if (isCall(toolUse)) toolUse.input = sentInput(toolUse.input, memberNames.get(toolUse.name));
    }
  }
  leaveFewMarks([toolConfig.tools, system, ...turns.map(({ content }) => content)]);
  const { fields, total, dropped } = reasoning(request, target.model, turns, forces(toolConfig));
  if (loose) dropped.push("tools.function.strict");
  if (traits && !fields?.["thinking"] && !traits.thinksUnasked) for (const turn of turns) leaveOutThinking(turn);
  const bound = traits?.bindsThinking && turns.some(({ content }) => content.some((one) => "reasoningContent" in one));
  const once = request.parallel_tool_calls === false && toolConfig.tools.length > 0;
  const more = {
    ...fields,
    ...(bound
      ? {
          thinking: unbound(fields?.["thinking"] as Record<string, unknown> | undefined),
          anthropic_beta: [BINDING_BETA],
        }
      : {}),
    // Beside Converse's own choice, which has no such member.
    ...(once ? { tool_choice: { disable_parallel_tool_use: true } } : {}),
  };
  const tier = sharedTier(request);
  const body = {
    messages: turns,
    ...unlessEmpty("system", system),
    ...unlessEmpty("inferenceConfig", inference(request, traits?.sampling ?? "both", total)),
    ...(toolConfig.tools.length > 0 ? { toolConfig } : {}),
    ...(native && schema ? { outputConfig: { textFormat: textFormat(wanted, schema) } } : {}),
    ...unlessEmpty("additionalModelRequestFields", more),
    ...(tier ? { serviceTier: { type: tier } } : {}),
    // Converse's own usage does not say how much of the answer was thought.
    ...(thinks && traits ? { additionalModelResponseFieldPaths: ["/usage/output_tokens_details"] } : {}),
  };
  const emulated = wanted && wanted.type !== "text" ? ("emulated" as const) : undefined;
  const responseFormat = native ? ("native" as const) : emulated;
  return { body, notes: { dropped, responseFormat }, jsonTool, memberNames };
}

/** Lengths, stops and sampling; with `total`, thinking's own limit, no temperature is taken. */
function inference(request: ChatRequest, takes: ClaudeTraits["sampling"], total: number | undefined): object {
  const stops = stopsOf(request);
  const most = total ?? request.max_completion_tokens ?? request.max_tokens;
  const { temperature, topP } = claudeSampling(request, takes);
  return {
    ...(most ? { maxTokens: most } : {}),
    ...(temperature === undefined || total ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stops.length > 0 ? { stopSequences: stops } : {}),
  };
}

const unlessEmpty = (name: string, value: object): Record<string, object> =>
  Object.keys(value).length > 0 ? { [name]: value } : {};

function textFormat(wanted: ChatRequest["response_format"], schema: JsonSchema): object {
  const { name, description } = wanted?.type === "json_schema" ? wanted.json_schema : {};
  const json = { schema: JSON.stringify(nativeSchema(schema)), ...given({ name, description }) };
  return { type: "json_schema", structure: { jsonSchema: json } };
}

function given(members: Readonly<Record<string, string | null | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(members).filter((member): member is [string, string] => Boolean(member[1])));
}

function isCall(use: unknown): use is { name: string; input: Record<string, unknown> } {
  return use !== undefined;
}

// Thinking goes back only to an answer that reasons as well.
function leaveOutThinking(turn: ConverseTurn): void {
  turn.content = turn.content.filter((block) => !("reasoningContent" in block));
}
