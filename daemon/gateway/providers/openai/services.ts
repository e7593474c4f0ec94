// Where services of OpenAI's format differ in what they take, by their hosts. Everything else gets what the client sent.
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Target } from "../adapter.ts";

// Configured addresses are few and parsing one is not free: bounded, for a configuration that changes for ever.
const parsedUrls = new Map<string, URL>();

export function parsedUrl(url: string): URL {
  const known = parsedUrls.get(url);
  if (known) return known;
  if (parsedUrls.size > 1000) parsedUrls.clear();
  const parsed = new URL(url);
  parsedUrls.set(url, parsed);
  return parsed;
}

function isAt(target: Target, hosts: RegExp): boolean {
  return target.baseUrl !== null && hosts.test(parsedUrl(target.baseUrl).hostname);
}

/** Mistral's service refuses what is not its own: it counts streams without being asked and knows no users. */
export function isMistral(target: Target): boolean {
  return isAt(target, /(^|\.)mistral\.ai$/);
}

/** It refuses what was thought elsewhere. Others want their reasoning back. */
export function isNarrow(target: Target): boolean {
  return target.baseUrl === null || isAt(target, /(^|\.)((openai|azure|groq)\.com|mistral\.ai)$/);
}

/**
 * Calls that end in `stop`, at which agents would stop, mean `tool_calls`. Where a call was asked for by name, `stop` is what OpenAI itself
 * says, and whoever stands in for it.
 */
export function mistakesStop(request: ChatRequest, target: Target): boolean {
  const named = typeof request.tool_choice === "object" || typeof request.function_call === "object";
  return !named && target.kind !== "azure" && !isNarrow(target);
}

/** It refuses any member of a message of which it does not know. */
export function isNarrowest(target: Target): boolean {
  return isAt(target, /(^|\.)(groq\.com|mistral\.ai)$/);
}

/** It refuses calls without what was thought before them; where nobody knows it, it takes a blank for it. */
export function wantsReasoning(target: Target): boolean {
  return isAt(target, /(^|\.)(deepseek\.com|moonshot\.(ai|cn)|kimi\.com)$/);
}

/**
 * The limit of an answer under the name that the service knows. DeepSeek and Ollama pass over `max_completion_tokens` without a word, and so over
 * what a budget has reserved; Mistral refuses it; OpenAI's reasoning models refuse `max_tokens`.
 */
export function namedLimit(request: ChatRequest, target: Target): Record<string, unknown> {
  const { max_tokens: old, max_completion_tokens: limit } = request;
  if (isOwn(target) && old && !limit && /^(o\d|gpt-([5-9]|\d\d))/.test(target.model)) {
    return { max_completion_tokens: old, max_tokens: undefined };
  }
  if (limit && !old && knowsOldName(target)) return { max_tokens: limit, max_completion_tokens: undefined };
  return {};
}

function isOwn(target: Target): boolean {
  return target.kind === "openai" && (target.baseUrl === null || isAt(target, /(^|\.)openai\.com$/));
}

function knowsOldName(target: Target): boolean {
  if (target.baseUrl === null) return false;
  return isAt(target, /(^|\.)(deepseek\.com|mistral\.ai)$/) || parsedUrl(target.baseUrl).port === OLLAMA;
}

const OLLAMA = "11434";
