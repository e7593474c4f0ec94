// What the sandbox answers: a pure function of the seed and the request. Text is the last user message again; schemas and tools are
// obeyed; `stop`, `max_tokens`, `n` and `logprobs` act as they do at a real model.
import { createHash } from "node:crypto";
import { fields, isObject } from "#contract/json-object.ts";
import type { FinishReason, Logprobs, ToolCall } from "#daemon/gateway/format/completion.ts";
import type { ChatRequest, Content } from "#daemon/gateway/format/request.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { estimateChatTokens } from "#daemon/gateway/pricing/estimate.ts";
import { invalid, stopsOf } from "../content.ts";
import { seededRandom } from "./random.ts";
import { sampleForSchema } from "./sample.ts";
import { type Budget, sampleBudget } from "./sampling.ts";
import { plannedCalls } from "./tools.ts";

export interface SandboxChoice {
  /** Null beside tool calls. A stream sends it in `piecesOf`. */
  readonly text: string | null;
  readonly toolCalls: readonly ToolCall[];
  /** The deprecated form: one call without an id. */
  readonly legacy: boolean;
  readonly logprobs: Logprobs | null;
  readonly finish: FinishReason;
}

export interface SandboxAnswer {
  readonly id: string;
  /** Unix seconds, by the request too: the same request has the same answer to the last byte. */
  readonly created: number;
  readonly choices: readonly SandboxChoice[];
  readonly usage: TokenUsage;
}

/** Tokens of the simulated model: four UTF-16 units each. */
const TOKEN = 4;
/** 2025 in Unix seconds: where the sandbox's clock stands. */
const EPOCH = 1_735_689_600;
const YEAR = 31_536_000;
const MOST_TOKENS = 8 * 1024 * 1024;
/** How much larger an answer with log probabilities is. */
const LOGPROB_WEIGHT = 16;
const MOST_LOGPROBS = 500_000;
/** A stream of a long text sends longer pieces, so that megabytes do not become millions of chunks. */
const MOST_PIECES = 2000;

/** The pieces of a text in a stream; surrogate pairs stay whole. */
export function* piecesOf(text: string): Generator<string> {
  const size = Math.max(TOKEN, Math.ceil(text.length / MOST_PIECES));
  for (let from = 0; from < text.length; ) {
    const end = boundary(text, from + size);
    yield text.slice(from, end);
    from = end;
  }
}

// Not between the two halves of a character.
function boundary(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff && at < text.length ? at + 1 : at;
}

/** Deterministic in `seed` and the request's meaning (whether it is streamed does not count). */
export function answerFor(request: ChatRequest, seed: number): SandboxAnswer {
  const { stream: _stream, stream_options: _options, ...meaning } = request;
  const digest = createHash("sha256")
    .update(`${seed}\n${JSON.stringify(meaning)}`)
    .digest("hex");
  const choices: SandboxChoice[] = [];
  const said = lastUserText(request);
  const planned = plannedCalls(request, said);
  const budget = sampleBudget();
  let output = 0;
  for (let index = 0; index < (request.n ?? 1); index++) {
    const one = choice(request, said, planned, index === 0 ? digest : `${digest}/${index}`, budget);
    choices.push(one);
    output += Math.ceil((one.text?.length ?? 0) / TOKEN) + callTokens(one.toolCalls);
    // An echo of megabytes, many times over, would be gigabytes.
    if (output * (request.logprobs ? LOGPROB_WEIGHT : 1) > MOST_TOKENS)
      throw invalid("n", "would make the answer too large");
  }
  return {
    id: `chatcmpl-${digest.slice(0, 29)}`,
    created: EPOCH + (Number.parseInt(digest.slice(0, 8), 16) % YEAR),
    choices,
    // As many as are reserved for it: a budget that covers a call is never overspent by it.
    usage: { input: estimateChatTokens(fields(request)), cached: 0, cache_write: 0, output, reasoning: 0 },
  };
}

function choice(
  request: ChatRequest,
  said: string,
  { calls, legacy }: ReturnType<typeof plannedCalls>,
  seed: string,
  budget: Budget,
): SandboxChoice {
  if (calls.length > 0) {
    const toolCalls = calls.map((call, position): ToolCall => {
      const args = JSON.stringify(sampleForSchema(call.parameters, seededRandom(`${seed}/${position}`), budget) ?? {});
      const id = `call_${createHash("sha256").update(`${seed}/${position}`).digest("hex").slice(0, 24)}`;
      return { id, type: "function", function: { name: call.name, arguments: args } };
    });
    const kept = withinLimit(toolCalls, mostTokens(request));
    const finish = legacy ? "function_call" : "tool_calls";
    return {
      text: kept.length > 0 ? null : "",
      toolCalls: kept,
      legacy,
      logprobs: null,
      finish: callTokens(kept) < callTokens(toolCalls) ? "length" : finish,
    };
  }
  return textChoice(request, textFor(request, said, seed, budget));
}

function textFor(request: ChatRequest, said: string, seed: string, budget: Budget): string {
  const format = request.response_format;
  if (format?.type === "json_schema") {
    const schema = format.json_schema.schema ?? { type: "object" };
    return JSON.stringify(sampleForSchema(schema, seededRandom(seed), budget) ?? null);
  }
  if (format?.type === "json_object" && !isJsonObject(said)) return JSON.stringify({ echo: said });
  return said;
}

function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

function textChoice(request: ChatRequest, text: string): SandboxChoice {
  let kept = text;
  for (const stop of stopsOf(request)) {
    const at = kept.indexOf(stop);
    if (at >= 0) kept = kept.slice(0, at);
  }
  let finish: FinishReason = "stop";
  const most = mostTokens(request);
  if (kept.length > most * TOKEN) {
    kept = kept.slice(0, boundary(kept, most * TOKEN));
    finish = "length";
  }
  // All choices are about as long.
  const pieces = Math.min(kept.length / TOKEN, MOST_PIECES);
  const probabilities = pieces * (1 + (request.top_logprobs ?? 0)) * (request.n ?? 1);
  const tooMany = probabilities > MOST_LOGPROBS || (kept.length / TOKEN) * LOGPROB_WEIGHT > MOST_TOKENS;
  if (request.logprobs && tooMany) throw invalid("logprobs", "would make the answer too large");
  return {
    text: kept,
    toolCalls: [],
    legacy: false,
    logprobs: request.logprobs ? logprobs(request, kept) : null,
    finish,
  };
}

function logprobs(request: ChatRequest, text: string): Logprobs {
  const content = Array.from(piecesOf(text), (token) => {
    const entry = { token, logprob: -0.0625, bytes: [...Buffer.from(token)] };
    const others = Array.from({ length: Math.max(0, (request.top_logprobs ?? 0) - 1) }, (_, rank) => ({
      token: `<${rank + 1}>`,
      logprob: -4 - rank,
      bytes: null,
    }));
    return { ...entry, top_logprobs: request.top_logprobs ? [entry, ...others] : [] };
  });
  return { content, refusal: null };
}

/** The last user message as text; parts joined with nothing between. Without one: the last message that has text. */
function lastUserText(request: ChatRequest): string {
  const texts = request.messages.map((message) => ({ role: message.role, text: textOf(message.content) }));
  return (texts.findLast((one) => one.role === "user") ?? texts.findLast((one) => one.text !== ""))?.text ?? "";
}

function textOf(content: Content | null | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Of each call, beside its name and arguments. */
const CALL = 4;

function callTokens(calls: readonly ToolCall[]): number {
  let tokens = 0;
  for (const { function: called } of calls)
    tokens += Math.ceil((called.name.length + called.arguments.length) / TOKEN) + CALL;
  return tokens;
}

// The last call's arguments end where the answer does, as a model's.
function withinLimit(calls: readonly ToolCall[], most: number): readonly ToolCall[] {
  const kept: ToolCall[] = [];
  let left = most;
  for (const call of calls) {
    const { name, arguments: args } = call.function;
    const room = (left - CALL) * TOKEN - name.length;
    if (room < 0) break;
    const end = Math.min(args.length, room);
    kept.push({ ...call, function: { name, arguments: args.slice(0, end) } });
    if (end < args.length) break;
    left -= callTokens([call]);
  }
  return kept;
}

function mostTokens(request: ChatRequest): number {
  return request.max_completion_tokens ?? request.max_tokens ?? Number.POSITIVE_INFINITY;
}
