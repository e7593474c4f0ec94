// Where services of OpenAI's format differ in what they take, by their hosts. Everything else gets what the client sent.
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Target } from "../adapter.ts";

/** Where a configured address leads. */
export interface Address {
  readonly origin: string;
  readonly hostname: string;
  readonly port: string;
  /** Path and query. */
  readonly path: string;
}

// Configured addresses are few and parsing one is not free: bounded, for a configuration that changes for ever.
const addresses = new Map<string, Address>();

export function addressOf(url: string): Address {
  const known = addresses.get(url);
  if (known) return known;
  if (addresses.size > 1000) addresses.clear();
  const { origin, hostname, port, pathname, search } = new URL(url);
  const address = { origin, hostname, port, path: pathname + search };
  addresses.set(url, address);
  return address;
}

/** What a service takes and refuses. */
interface Service {
  /** It refuses what is not its own: it counts streams without being asked and knows no users. */
  readonly mistral: boolean;
  /** It refuses what was thought elsewhere. Others want their reasoning back. */
  readonly narrow: boolean;
  /** It refuses any member of a message of which it does not know. */
  readonly narrowest: boolean;
  /** It refuses OpenAI's role `developer`, or passes over what it says. */
  readonly systemOnly: boolean;
  /** It refuses calls without what was thought before them; where nobody knows it, it takes a blank for it. */
  readonly wantsReasoning: boolean;
  /** It embeds texts as bytes, a signed one for each number, in base64, and refuses to be asked for OpenAI's formats. */
  readonly bytes: boolean;
}

const OLLAMA = "11434";

const services = new Map<string | null, Service>();

export function serviceOf({ baseUrl }: Target): Service {
  let service = services.get(baseUrl);
  if (!service) {
    if (services.size > 1000) services.clear();
    const { hostname: host, port } = baseUrl === null ? { hostname: "", port: "" } : addressOf(baseUrl);
    service = {
      mistral: /(^|\.)mistral\.ai$/.test(host),
      narrow: baseUrl === null || /(^|\.)((openai|azure|groq)\.com|mistral\.ai)$/.test(host),
      narrowest: /(^|\.)(groq\.com|mistral\.ai)$/.test(host),
      systemOnly: /(^|\.)(deepseek\.com|mistral\.ai|moonshot\.(ai|cn)|kimi\.com)$/.test(host) || port === OLLAMA,
      wantsReasoning: /(^|\.)(deepseek\.com|moonshot\.(ai|cn)|kimi\.com)$/.test(host),
      bytes: /(^|\.)perplexity\.ai$/.test(host),
    };
    services.set(baseUrl, service);
  }
  return service;
}

/** A model of Mistral's, whoever serves it, or what Mistral serves: its rules for the order of turns hold. */
export function isMistral(target: Target): boolean {
  return serviceOf(target).mistral || /(mi|mini|magi|dev|code)stral|(mi|pi|vo)xtral/i.test(target.model);
}

/** Its base URL, where it has one, names such a host. */
export function isAt(target: Target, hosts: RegExp): boolean {
  return target.baseUrl !== null && hosts.test(addressOf(target.baseUrl).hostname);
}

/** Gemini's imitation of OpenAI counts what was thought, and charged, in the total alone. */
export function thoughtsInTotal({ model }: Target): boolean {
  return /gemini/i.test(model);
}

/**
 * Calls that end in `stop`, at which agents would stop, mean `tool_calls`. Where a call was asked for by name, `stop` is what OpenAI itself
 * says, and whoever stands in for it.
 */
export function mistakesStop(request: ChatRequest, target: Target): boolean {
  const named = typeof request.tool_choice === "object" || typeof request.function_call === "object";
  return !named && target.kind !== "azure" && !serviceOf(target).narrow;
}

/** What becomes of `n` is for OpenAI to say, and for what goes by its name. Others (Ollama, OpenRouter, DeepSeek) pass over it without a word. */
export function judgesChoices(target: Target): boolean {
  return target.provider === "openai" || isOpenai(target);
}

/**
 * The limit of an answer under the name that the service knows. DeepSeek and Ollama pass over `max_completion_tokens` without a word, and so over
 * what a budget has reserved; Mistral refuses it; OpenAI's reasoning models refuse `max_tokens`.
 */
export function namedLimit(request: ChatRequest, target: Target): Record<string, unknown> {
  const { max_tokens: old, max_completion_tokens: limit } = request;
  if (isOpenai(target) && old && !limit && /^(o\d|gpt-([5-9]|\d\d))/.test(target.model)) {
    return { max_completion_tokens: old, max_tokens: undefined };
  }
  if (limit && !old && knowsOldName(target)) return { max_tokens: limit, max_completion_tokens: undefined };
  return {};
}

// At Azure the model is a deployment's name: mostly the model's.
function isOpenai(target: Target): boolean {
  return target.kind === "azure" || target.baseUrl === null || isAt(target, /(^|\.)(openai|azure)\.com$/);
}

function knowsOldName(target: Target): boolean {
  if (target.baseUrl === null) return false;
  return isAt(target, /(^|\.)(deepseek\.com|mistral\.ai)$/) || addressOf(target.baseUrl).port === OLLAMA;
}
