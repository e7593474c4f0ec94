// Where servers of OpenAI's format (vLLM, SGLang, Ollama, Mistral, Groq...) leave its specification: nulls for what may only be absent,
// finish reasons and service tiers of their own, contents in parts, tool calls without an id, a type or a place. Looked at in every
// answer, so each check is a few comparisons; only what fails is mended, and only then is an answer written anew.
import { fields, isObject, list, string } from "#contract/json-object.ts";
import type { FinishReason } from "#daemon/gateway/format/completion.ts";
import { cachedBeside, count, countsOf, isCount, serviceTiers } from "#daemon/gateway/format/usage.ts";
import { failure, UpstreamError } from "../failure.ts";
import { freshId } from "../tool-id.ts";
import { type Calls, isCustom, mendedPieces } from "./streamed-calls.ts";

export type Fields = Record<string, unknown>;

const tiers: ReadonlySet<unknown> = new Set(["auto", "default", ...serviceTiers, "fast", null, undefined]);
const finishes: ReadonlySet<unknown> = new Set(["stop", "length", "tool_calls", "content_filter", "function_call"]);
const roles: ReadonlySet<unknown> = new Set(["developer", "system", "user", "assistant", "tool", undefined]);

/** Members of a completion or a chunk beside its choices and usage. */
export function soundHead(answer: Fields): boolean {
  if (typeof answer["id"] !== "string" || typeof answer["model"] !== "string") return false;
  if (!Number.isInteger(answer["created"]) || !tiers.has(answer["service_tier"])) return false;
  return textOrAbsent(answer["system_fingerprint"]) && textOrAbsent(answer["obfuscation"]);
}

export function mendedHead(answer: Fields): Fields {
  const { service_tier: tier, system_fingerprint: print, obfuscation: filler, ...rest } = answer;
  return {
    ...rest,
    ...(tier !== undefined && tiers.has(tier) ? { service_tier: tier } : {}),
    ...(typeof print === "string" ? { system_fingerprint: print } : {}),
    ...(typeof filler === "string" ? { obfuscation: filler } : {}),
  };
}

export function soundUsage(usage: Fields): boolean {
  return (
    isWhole(usage["prompt_tokens"]) &&
    isWhole(usage["completion_tokens"]) &&
    isWhole(usage["total_tokens"]) &&
    soundDetails(usage["prompt_tokens_details"]) &&
    soundDetails(usage["completion_tokens_details"]) &&
    (cachedBeside(usage) === 0 || saysCached(usage))
  );
}

function saysCached(usage: Fields): boolean {
  return count(fields(usage["prompt_tokens_details"])["cached_tokens"]) > 0;
}

function soundDetails(details: unknown): boolean {
  if (details === undefined) return true;
  if (typeof details !== "object" || details === null) return false;
  if (Array.isArray(details)) return false;
  for (const name in details) if (!isWhole((details as Fields)[name])) return false;
  return true;
}

/** A count as the specification has them. */
export function isWhole(value: unknown): boolean {
  return Number.isInteger(value) && isCount(value);
}

export function mendedUsage(usage: Fields): Fields {
  const { prompt_tokens_details: prompt, completion_tokens_details: completion, ...rest } = usage;
  const { prompt: asked, completion: answered } = countsOf(usage) ?? { prompt: 0, completion: 0 };
  const beside = saysCached(usage) ? 0 : Math.min(cachedBeside(usage), asked);
  return {
    ...rest,
    prompt_tokens: asked,
    completion_tokens: answered,
    total_tokens: count(usage["total_tokens"]) || asked + answered,
    ...(prompt || beside > 0
      ? { prompt_tokens_details: { ...counts(prompt), ...(beside > 0 ? { cached_tokens: beside } : {}) } }
      : {}),
    ...(completion ? { completion_tokens_details: counts(completion) } : {}),
  };
}

function counts(details: unknown): Fields {
  return Object.fromEntries(Object.entries(fields(details)).filter(([, value]) => isWhole(value)));
}

export function soundFinish(reason: unknown): boolean {
  return finishes.has(reason);
}

/** Throws UpstreamError where the reason is an error: what came is no answer. */
export function finishOf(reason: unknown): FinishReason {
  if (finishes.has(reason)) return reason as FinishReason;
  switch (reason) {
    case "model_length":
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_call":
    case "tool_use":
      return "tool_calls";
    case "safety":
    case "sensitive":
    case "content-filter":
      return "content_filter";
    // Mistral and OpenRouter, vLLM and SGLang, Zhipu, DeepSeek.
    case "error":
    case "abort":
    case "network_error":
    case "insufficient_system_resource":
      throw new UpstreamError(
        failure("server", "The provider ended its answer with an error.", { upstreamStatus: 200 }),
      );
    default:
      return "stop";
  }
}

/** A whole answer's message. */
export function soundMessage(message: Fields): boolean {
  const { content, refusal, annotations, tool_calls: calls, function_call: old } = message;
  if (message["role"] !== "assistant" || !(typeof content === "string" || content === null)) return false;
  if (!(typeof refusal === "string" || refusal === null)) return false;
  if (!(annotations === undefined || (Array.isArray(annotations) && annotations.every(isCitation)))) return false;
  if (old === null || thoughtIn(message)) return false;
  return calls === undefined || (Array.isArray(calls) && calls.every(soundCall) && differ(calls));
}

function soundCall(call: Fields | null): boolean {
  if (!call || typeof call["id"] !== "string" || call["id"] === "") return false;
  if (call["type"] === "custom") return true;
  const called = call["function"] as Fields | undefined;
  return call["type"] === "function" && typeof called?.["arguments"] === "string" && typeof called["name"] === "string";
}

function differ(calls: readonly Fields[]): boolean {
  return calls.length < 2 || new Set(calls.map(({ id }) => id)).size === calls.length;
}

// The only kind of annotation that the specification has; OpenRouter gives a file's text in another.
function isCitation(annotation: unknown): boolean {
  const { type, url_citation: cited } = fields(annotation);
  const { start_index: start, end_index: end, url, title } = fields(cited);
  if (type !== "url_citation" || typeof url !== "string" || typeof title !== "string") return false;
  return Number.isInteger(start) && Number.isInteger(end);
}

export function mendedMessage(message: Fields): Fields {
  const { content, refusal, annotations, tool_calls: calls, function_call: old, ...rest } = message;
  return {
    ...rest,
    ...thoughtIn(message),
    ...inParts(content),
    refusal: typeof refusal === "string" ? refusal : null,
    ...(Array.isArray(annotations) ? { annotations: annotations.filter(isCitation) } : {}),
    ...(Array.isArray(calls) ? { tool_calls: mendedCalls(calls) } : {}),
    ...(old ? { function_call: old } : {}),
    role: "assistant",
  };
}

// Groq, OpenRouter, Together, Ollama and newer vLLMs say `reasoning` where this gateway, like others, says `reasoning_content`; null where
// there is nothing to add.
function thoughtIn({ reasoning, reasoning_content: said }: Fields): { reasoning_content: string } | null {
  return typeof reasoning === "string" && reasoning !== "" && typeof said !== "string"
    ? { reasoning_content: reasoning }
    : null;
}

// Reasoning models answer in parts at Mistral's (`{type: "thinking", thinking: [{type: "text", text}]}` and `{type: "text", text}`) and at Databricks
// (`{type: "reasoning", summary: [{type: "summary_text", text}]}`).
export function inParts(content: unknown): { content: string | null; reasoning_content?: string } {
  if (typeof content === "string") return { content };
  if (!Array.isArray(content)) return { content: null };
  const thoughts = content.map(fields).filter(({ type }) => type === "thinking" || type === "reasoning");
  const thought = thoughts.map(({ thinking, summary }) => textsOf(thinking ?? summary)).join("");
  return { content: textsOf(content), ...(thought ? { reasoning_content: thought } : {}) };
}

function textsOf(parts: unknown): string {
  if (typeof parts === "string") return parts;
  return list(parts)
    .map((part) => (typeof part === "string" ? part : string(fields(part)["text"])))
    .join("");
}

// Results are told apart by the ids of their calls.
function mendedCalls(given: readonly unknown[]): Fields[] {
  const ids = new Set<unknown>();
  return given.map(mendedCall).map((call) => {
    const mended = ids.has(call["id"]) ? { ...call, id: freshId() } : call;
    ids.add(mended["id"]);
    return mended;
  });
}

function mendedCall(given: unknown): Fields {
  const call = fields(given);
  const id = string(call["id"]) || freshId();
  if (isCustom(call)) return { ...call, id, type: "custom" };
  const called = fields(call["function"]);
  const text = called["arguments"];
  return {
    ...call,
    id,
    type: "function",
    function: {
      ...called,
      name: string(called["name"]),
      arguments: typeof text === "string" ? text : JSON.stringify(text ?? {}),
    },
  };
}

/** A chunk's delta. */
export function soundDelta(delta: Fields): boolean {
  if (typeof delta !== "object" || Array.isArray(delta)) return false;
  const { content, refusal, tool_calls: calls } = delta;
  if (!roles.has(delta["role"]) || delta["function_call"] === null || thoughtIn(delta)) return false;
  if (typeof content !== "string" && content !== undefined && content !== null) return false;
  if (typeof refusal !== "string" && refusal !== undefined && refusal !== null) return false;
  return calls === undefined || (Array.isArray(calls) && calls.every(soundPiece));
}

function soundPiece(piece: Fields | null): boolean {
  if (!piece || !Number.isInteger(piece["index"]) || !textOrAbsent(piece["id"])) return false;
  if (isCustom(piece)) return true;
  if (piece["type"] !== undefined && piece["type"] !== "function") return false;
  const called = piece["function"];
  if (called === undefined) return true;
  return isObject(called) && textOrAbsent(called["name"]) && textOrAbsent(called["arguments"]);
}

function textOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

/** `over`: the choice ends, and with it the waiting for names. */
export function mendedDelta(delta: Fields, known: Calls, over: boolean): Fields {
  const { role, content, refusal, tool_calls: calls, function_call: old, ...rest } = delta;
  const parts = Array.isArray(content) ? inParts(content) : {};
  const pieces = mendedPieces(calls, known, over);
  return {
    ...rest,
    ...thoughtIn(delta),
    ...(typeof role === "string" && roles.has(role) ? { role } : {}),
    ...(typeof content === "string" || content === null ? { content } : parts),
    ...(typeof refusal === "string" ? { refusal } : {}),
    ...(pieces.length > 0 ? { tool_calls: pieces } : {}),
    ...(old ? { function_call: old } : {}),
  };
}
