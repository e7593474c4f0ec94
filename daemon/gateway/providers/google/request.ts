// OpenAI's request as Gemini's generateContent request.
import { modern } from "#daemon/gateway/format/modern.ts";
import type { ChatRequest, ReasoningEffort } from "#daemon/gateway/format/request.ts";
import type { Target, Unsupported } from "../adapter.ts";
import { begunAnswer } from "../begun.ts";
import {
  answerSchema,
  jsonInstruction,
  objectSchema,
  somePrompt,
  stopsOf,
  type ToolPlan,
  toolPlan,
} from "../content.ts";
import { ownTier, sharedTier, supportOf } from "../support.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { isOurs } from "../tool-id.ts";
import type { WireIo } from "../wire.ts";
import { signatureBack } from "./calls.ts";
import { type GeminiContent, geminiMessages } from "./messages.ts";
import { geminiSchema } from "./schema.ts";
import { type ToolNames, toolNames } from "./tool-names.ts";

/** The table's refusals, and what this model refuses beyond them. */
export function googleUnsupported(request: ChatRequest, model: string): readonly Unsupported[] {
  const found = [...supportOf("google", request), ...ownTier(request)];
  const refuse = (param: string, reason: string) => found.push({ param, reason, droppable: true });
  if (/gemini-[3-9]/.test(model)) {
    if ((request.n ?? 1) > 1) refuse("n", "this model gives one choice a request");
    if (request.presence_penalty) refuse("presence_penalty", "this model has no such penalty");
    if (request.frequency_penalty) refuse("frequency_penalty", "this model has no such penalty");
  } else if ((request.n ?? 1) > 8) refuse("n", "it gives at most 8 choices");
  if (!goesOn(model)) found.push(...begunAnswer(request));
  const effort = request.reasoning_effort;
  if (typeof request.seed === "number" && (request.seed < -(2 ** 31) || request.seed >= 2 ** 31)) {
    refuse("seed", "its seeds have 32 bits");
  }
  if (effort && effort !== "none" && thinkingKind(model) === "none") {
    refuse("reasoning_effort", "this model does not reason");
  }
  return found;
}

/** Throws UpstreamError (`invalid`) for what cannot be said. */
export async function googleRequest(
  given: ChatRequest,
  target: Target,
  signatures: ThoughtMemory,
  caller: string,
  io: WireIo,
): Promise<{ readonly body: Record<string, unknown>; readonly names: ToolNames }> {
  const request = modern(given);
  const plan = toolPlan(request);
  const names = toolNames(plan.tools);
  const signed = thinkingKind(target.model) === "level";
  if (signatures.load) await signatures.load(caller, unsignedCalls(request));
  const { system, contents } = await geminiMessages(request, { signatures, caller, signed, nameOf: names.sent, io });
  if (isTold(request, target.model)) {
    system.push({ text: jsonInstruction(answerSchema(request)) });
  }
  if (contents.length === 0) contents.push({ role: "user", parts: somePrompt(system) });
  // Gemma has no system prompt.
  if (system.length > 0 && target.model.includes("gemma")) addBefore(contents, system.splice(0));
  const tier = sharedTier(request);
  const body = {
    contents,
    ...(system.length > 0 ? { systemInstruction: { parts: system } } : {}),
    ...toolsOf(plan, names),
    generationConfig: generationConfig(request, target),
    // What a request does not say is up to the Google project: newer ones keep every request.
    ...(typeof request.store === "boolean" ? { store: request.store } : {}),
    ...(tier ? { serviceTier: tier } : {}),
  };
  return { body, names };
}

/** True where the form of the answer is told in words: before Gemini 3 a request has tools or JSON, not both. */
export function isTold(request: ChatRequest, model: string): boolean {
  const format = request.response_format;
  const tools = (request.tools?.length ?? 0) + (request.functions?.length ?? 0);
  return Boolean(format) && format?.type !== "text" && tools > 0 && thinkingKind(model) !== "level";
}

function addBefore(contents: GeminiContent[], parts: unknown[]): void {
  if (contents[0]?.role === "user") contents[0].parts.unshift(...parts);
  else contents.unshift({ role: "user", parts });
}

// Those whose signatures only the memory can have.
function unsignedCalls({ messages }: ChatRequest): string[] {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  return calls.flatMap((call) =>
    call.type !== "function" || isOurs(call.id) || signatureBack(call.extra_content) ? [] : [call.id],
  );
}

function toolsOf({ tools, choice }: ToolPlan, names: ToolNames): object {
  if (tools.length === 0) return {};
  const functionDeclarations = tools.map((tool) => ({
    name: names.sent(tool.name),
    description: tool.description ?? "",
    ...(tool.parameters ? { parametersJsonSchema: geminiSchema(objectSchema(tool.parameters)) } : {}),
  }));
  const strict = tools.some((tool) => tool.strict === true);
  const modes = { auto: strict ? "VALIDATED" : "AUTO", none: "NONE", required: "ANY", named: "ANY" } as const;
  const config = {
    mode: modes[choice?.mode ?? "auto"],
    ...(choice?.mode === "named" ? { allowedFunctionNames: [names.sent(choice.name)] } : {}),
  };
  return { tools: [{ functionDeclarations }], toolConfig: { functionCallingConfig: config } };
}

function generationConfig(request: ChatRequest, target: Target): Record<string, unknown> {
  const stops = stopsOf(request);
  const format = isTold(request, target.model) ? null : request.response_format;
  const sampling = samplesAsFixed(target.model) ? {} : { temperature: request.temperature, topP: request.top_p };
  return given({
    ...sampling,
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens,
    candidateCount: (request.n ?? 1) > 1 ? request.n : undefined,
    stopSequences: stops.length > 0 ? stops : undefined,
    seed: request.seed,
    presencePenalty: request.presence_penalty,
    frequencyPenalty: request.frequency_penalty,
    responseLogprobs: request.logprobs || undefined,
    logprobs: request.logprobs && request.top_logprobs ? request.top_logprobs : undefined,
    responseMimeType: format && format.type !== "text" ? "application/json" : undefined,
    responseJsonSchema:
      format?.type === "json_schema" && format.json_schema.schema ? geminiSchema(answerSchema(request)) : undefined,
    thinkingConfig: thinking(request.reasoning_effort, target.model),
  });
}

// Those before 3.6 Flash and 3.5 Flash-Lite.
function goesOn(model: string): boolean {
  return /gemini-([12]\b|3(\.[0-4])?-|3\.5-flash(?!-lite)|pro-latest)|gemma|learnlm/.test(model);
}

/** What the model is not told: a sampling that it passes over (and the next ones are said to refuse), an end of its thinking that it does not know. */
export function leftOut(request: ChatRequest, model: string): string[] {
  const sampling = (["temperature", "top_p"] as const).filter((param) => typeof request[param] === "number");
  const unstopped = request.reasoning_effort === "none" && thinksAlways(model);
  return [...(samplesAsFixed(model) ? sampling : []), ...(unstopped ? ["reasoning_effort"] : [])];
}

function thinksAlways(model: string): boolean {
  return thinkingKind(model) !== "none" && hasNoMinimal(model);
}

// 3.6 Flash, 3.5 Flash-Lite, and what came after them; a name that says nothing is sent what was asked for.
function samplesAsFixed(model: string): boolean {
  return /gemini-(3\.5-flash-lite|3\.([6-9]|\d\d)|[4-9]|flash(-lite)?-latest)/.test(model);
}

// Pro never had the level `minimal`, nor have Flash since 3.7 and Gemini 4; Flash-Lite has it.
function hasNoMinimal(model: string): boolean {
  if (model.includes("pro") || model.includes("gemini-flash-latest")) return true;
  const [, major, minor] = /gemini-(\d+)(?:\.(\d+))?(?!.*flash-lite)/.exec(model) ?? [];
  return Number(major) > 3 || (Number(major) === 3 && Number(minor) >= 7);
}

function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/** How a model is told to think: Gemini 3 by level, 2.5 by budget, earlier ones not at all. Unknown names count as new. */
function thinkingKind(model: string): "level" | "budget" | "none" {
  if (/gemini-2\.5-.*(image|tts)/.test(model)) return "none";
  if (/gemini-2\.5|robotics-er-1\.5/.test(model)) return "budget";
  if (/gemini-(1|2)|gemma|learnlm|aqa/.test(model)) return "none";
  return "level";
}

const budgets: Readonly<Record<ReasoningEffort, number>> = {
  none: 0,
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
};

function thinking(effort: ReasoningEffort | null | undefined, model: string): object | undefined {
  const kind = thinkingKind(model);
  if (!effort || kind === "none") return undefined;
  const includeThoughts = effort !== "none";
  const pro = model.includes("pro");
  if (kind === "budget") {
    // Pro models cannot stop thinking; 128 is their least.
    return { thinkingBudget: pro ? Math.max(budgets[effort], 128) : budgets[effort], includeThoughts };
  }
  const least = hasNoMinimal(model) ? "low" : "minimal";
  const levels = {
    none: least,
    minimal: least,
    low: "low",
    medium: "medium",
    high: "high",
    xhigh: "high",
    max: "high",
  };
  // The first Gemini 3 Pro knows low and high alone.
  const level = effort === "medium" && /gemini-3-pro/.test(model) ? "high" : levels[effort];
  return { thinkingLevel: level, includeThoughts };
}
