// OpenAI's request as Anthropic's Messages request.
import { createHash } from "node:crypto";
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Notes, Target, Unsupported } from "../adapter.ts";
import {
  answerSchema,
  answerToolName,
  demandsCall,
  jsonInstruction,
  MOST_MARKS,
  objectSchema,
  somePrompt,
  stopsOf,
  toolMarks,
  toolPlan,
} from "../content.ts";
import { isAt } from "../openai/services.ts";
import { supportOf } from "../support.ts";
import { type ClaudeThoughts, lacksThinking } from "../thoughts/claude.ts";
import { type MemberNames, sentInput, withNames } from "./member-names.ts";
import { anthropicMessages, cached, type Turn } from "./messages.ts";
import { type ClaudeTraits, claudeTraits } from "./models.ts";
import { claudeRefusals, claudeSampling } from "./refusals.ts";
import { inputSchema, nativeSchema, schemaKeeper } from "./schema.ts";
import { BINDING_BETA, claudeThinking, claudeThinks, type Thinking, thinkingRoom, unbound } from "./thinking.ts";

export interface AnthropicRequest {
  readonly body: Record<string, unknown>;
  readonly notes: Notes;
  readonly jsonTool: string | undefined;
  readonly memberNames: MemberNames;
  /** The beta that the body needs. */
  readonly beta: string | undefined;
}

/** The table's refusals, and what this model refuses beyond them. */
export function anthropicUnsupported(request: ChatRequest, model: string): readonly Unsupported[] {
  return [...supportOf("anthropic", request), ...claudeRefusals(request, claudeTraits(model))];
}

/** Throws UpstreamError (`invalid`) for what cannot be said. */
export function anthropicRequest(given: ChatRequest, target: Target, thoughts: ClaudeThoughts): AnthropicRequest {
  const request = modern(given);
  const traits = claudeTraits(target.model);
  const thinks = claudeThinks(request.reasoning_effort, traits);
  const { system, turns } = anthropicMessages(
    request,
    thinks ? thoughts : null,
    traits.hearsSystemLater && !isFoundry(target),
  );
  if (turns.length === 0) turns.push({ role: "user", content: somePrompt(system) });
  const memberNames = new Map<string, ReadonlyMap<string, string>>();
  const { tools, toolChoice, loose, jsonTool, format, responseFormat } = toolsOf(request, traits, system, memberNames);
  for (const { content } of memberNames.size > 0 ? turns : []) {
    for (const block of content) {
      if (isCall(block)) block.input = sentInput(block.input, memberNames.get(block.name));
    }
  }
  const blocks = [tools, system, ...turns.map(({ content }) => content)].flat() as { cache_control?: object }[];
  for (const block of blocks.filter((one) => one.cache_control).slice(0, -MOST_MARKS)) delete block.cache_control;
  const answer = answerTokens(request, target, traits);
  const forced = toolChoice?.["type"] === "any" || toolChoice?.["type"] === "tool";
  const thinking = thinkingOf(request, traits, turns, forced, answer);
  if (!thinking.field && !traits.thinksUnasked) for (const turn of turns) leaveOutThinking(turn);
  const bound = traits.bindsThinking && turns.some(({ content }) => content.some((one) => kindOf(one) === "thinking"));
  const field = bound ? unbound(thinking.field) : thinking.field;
  const stops = stopsOf(request);
  const effort =
    thinking.effort || format
      ? { output_config: { ...(thinking.effort ? { effort: thinking.effort } : {}), ...(format ? { format } : {}) } }
      : {};
  const user = request.user ?? request.safety_identifier;
  const { temperature, topP } = claudeSampling(request, traits.sampling);
  const body = {
    model: target.model,
    max_tokens: thinking.total ?? answer,
    ...(system.length > 0 ? { system } : {}),
    messages: turns,
    ...(tools.length > 0 ? { tools } : {}),
    ...(toolChoice ? { tool_choice: toolChoice } : {}),
    ...(temperature === undefined || thinking.total ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stops.length > 0 ? { stop_sequences: stops } : {}),
    ...(field ? { thinking: field } : {}),
    ...effort,
    ...(user ? { metadata: { user_id: opaque(user) } } : {}),
    ...(request.stream ? { stream: true } : {}),
  };
  const notes = { dropped: [...thinking.dropped, ...(loose ? ["tools.function.strict"] : [])], responseFormat };
  return { body, notes, jsonTool, memberNames, beta: bound ? BINDING_BETA : undefined };
}

// Microsoft's service knows no turns of the system, whatever the model hears.
function isFoundry(target: Target): boolean {
  return isAt(target, /\.azure\.com$/);
}

// The service refuses what looks like an e-mail address or a telephone number, and what is long; it asks for a hash instead.
function opaque(user: string): string {
  const plain = user.length <= 256 && !user.includes("@") && !/^\+?[\d\s().-]{7,}$/.test(user);
  return plain ? user : createHash("sha256").update(user).digest("hex");
}

// Messages demands a `max_tokens`. Half of the model's longest answer leaves enough for thinking on a budget; in the shorter ones of old models
// the thinking has the larger part.
function answerTokens(request: ChatRequest, target: Target, traits: ClaudeTraits): number {
  const asked = request.max_completion_tokens ?? request.max_tokens;
  const longest = Math.max(target.maxOutputTokens ?? traits.maxOutput, 1);
  return asked || (longest < 64_000 ? Math.min(longest, 8192) : Math.floor(longest / 2));
}

/** The `max_tokens` of this request, should it think. */
export function anthropicLongest(request: ChatRequest, target: Target): number {
  const traits = claudeTraits(target.model);
  const answer = answerTokens(request, target, traits);
  return thinkingRoom(request.reasoning_effort, traits, answer)?.total ?? answer;
}

interface SentTools {
  readonly tools: Record<string, unknown>[];
  readonly toolChoice?: Record<string, unknown> | undefined;
  /** A strict tool is sent as an ordinary one. */
  readonly loose: boolean;
  readonly jsonTool?: string;
  readonly format?: object;
  readonly responseFormat?: Notes["responseFormat"];
}

function toolsOf(
  request: ChatRequest,
  traits: ClaudeTraits,
  system: unknown[],
  names: Map<string, ReadonlyMap<string, string>>,
): SentTools {
  const plan = toolPlan(request);
  const keeps = schemaKeeper();
  const wanted = request.response_format;
  const schema = answerSchema(request);
  const native = schema !== null && traits.nativeSchema && keeps(schema);
  const marks = toolMarks(request);
  let loose = false;
  const tools: Record<string, unknown>[] = plan.tools.map((tool) => {
    const input = withNames(tool.name, inputSchema(objectSchema(tool.parameters)), names);
    // What the service cannot keep it would refuse: such a tool is an ordinary one.
    const strict = tool.strict === true && traits.nativeSchema && keeps(input);
    loose ||= tool.strict === true && !strict;
    return {
      name: tool.name,
      ...(tool.description ? { description: tool.description } : {}),
      input_schema: strict ? nativeSchema(input) : input,
      ...(strict ? { strict } : {}),
      ...cached(marks.get(tool) ?? null),
    };
  });
  const once = request.parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {};
  const given = { tools, loose, toolChoice: plan.choice ? choiceOf(plan.choice, once) : undefined };
  if (wanted?.type === "json_object") {
    system.push({ type: "text", text: jsonInstruction() });
    return { ...given, responseFormat: "emulated" };
  }
  if (!schema) return given;
  if (native) {
    const format = { type: "json_schema", schema: nativeSchema(schema) };
    return { ...given, format, responseFormat: "native" };
  }
  if (!traits.forcesTools) {
    system.push({ type: "text", text: jsonInstruction(schema) });
    return { ...given, responseFormat: "emulated" };
  }
  // The answer is a call of the caller's own tools then, of which the schema says nothing.
  if (demandsCall(plan)) return { ...given, responseFormat: "emulated" };
  const jsonTool = answerToolName(plan.tools);
  tools.push({
    name: jsonTool,
    description: "Give the final answer by calling this tool.",
    input_schema: withNames(jsonTool, inputSchema(objectSchema(schema)), names),
  });
  const toolChoice =
    plan.tools.length > 0 && plan.choice?.mode !== "none"
      ? { type: "any", ...once }
      : { type: "tool", name: jsonTool, disable_parallel_tool_use: true };
  return { ...given, toolChoice, jsonTool, responseFormat: "emulated" };
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

function thinkingOf(
  request: ChatRequest,
  traits: ClaudeTraits,
  turns: readonly Turn[],
  forced: boolean,
  answer: number,
): Thinking {
  if (!request.reasoning_effort) return { dropped: [] };
  const bare = lacksThinking(turns.map(({ role, content }) => ({ role, blocks: content.map(kindOf) })));
  return claudeThinking(request.reasoning_effort, traits, { forced, bare }, answer);
}

function isCall(block: unknown): block is { name: string; input: Record<string, unknown> } {
  return (block as { type: string }).type === "tool_use";
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

// Thinking goes back only to an answer that reasons as well.
function leaveOutThinking(turn: Turn): void {
  turn.content = turn.content.filter((block) => kindOf(block) !== "thinking");
}
