// OpenAI's chat completions and embeddings, and every server that speaks them (vLLM, Ollama, Groq, Mistral, xAI...): the client's bytes
// go on with the model's name exchanged.
import { forwardBody } from "#daemon/gateway/format/forward.ts";
import type { AssistantMessage, Message, ToolMessage } from "#daemon/gateway/format/request.ts";
import type { ChatCall, EmbeddingCall, Target } from "../adapter.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { isBare, withReasoning } from "../thoughts/reasoning.ts";
import { isSigned, portableId, shortId } from "../tool-id.ts";
import type { Prepared, Wire } from "../wire.ts";
import { unmarked } from "./cache-marks.ts";
import { readCompletion } from "./completion.ts";
import { openaiFailure } from "./errors.ts";
import { openaiDecoder } from "./stream.ts";

const VENDOR = "https://api.openai.com/v1";
/** Characters that OpenAI takes in the id of a tool call. */
const LONGEST_ID = 40;

/** `thoughts` remembers the reasoning of turns that called tools. */
export function openaiWire(thoughts: ThoughtMemory): Wire {
  return openaiFormat("openai", thoughts, (target, path) => ({
    url: `${(target.baseUrl ?? VENDOR).replace(/\/+$/, "")}${path}`,
    headers: target.credentials.apiKey ? { authorization: `Bearer ${target.credentials.apiKey}` } : {},
  }));
}

/** A wire of OpenAI's format at an address and with headers of its own. */
export function openaiFormat(
  kind: "openai" | "azure",
  thoughts: ThoughtMemory,
  endpoint: (target: Target, path: string) => { url: string; headers: Record<string, string> },
): Wire {
  function post(target: Target, path: string, body: Buffer | string, traceparent?: string) {
    const { url, headers } = endpoint(target, path);
    const { origin, pathname, search } = parsedUrl(url);
    return {
      origin,
      method: "POST" as const,
      path: pathname + search,
      headers: { ...common, ...headers, ...(traceparent ? { traceparent } : {}) },
      body,
    };
  }
  return {
    kind,
    passesThrough: true,
    unsupported: () => [],
    prepare: (call, target): Prepared => ({
      request: post(target, "/chat/completions", chatBody(call, target, thoughts), call.traceparent),
      notes: {
        dropped: [],
        responseFormat: call.request.response_format?.type === "json_schema" ? "native" : undefined,
      },
    }),
    prepareEmbedding: (call, target) => post(target, "/embeddings", embeddingBody(call, target)),
    read: (body, context) => readCompletion(body, context, thoughts),
    decoder: (context, emit) => openaiDecoder(context, emit, thoughts),
    failure: (status, headers, body, target) =>
      openaiFailure(status, headers, body, target.credentials.apiKey ? [target.credentials.apiKey] : []),
  };
}

// Configured addresses are few and parsing one is not free: bounded, for a configuration that changes for ever.
const parsedUrls = new Map<string, URL>();
function parsedUrl(url: string): URL {
  const known = parsedUrls.get(url);
  if (known) return known;
  if (parsedUrls.size > 1000) parsedUrls.clear();
  const parsed = new URL(url);
  parsedUrls.set(url, parsed);
  return parsed;
}

const common = { "content-type": "application/json", accept: "*/*", "accept-encoding": "identity" };

function chatBody(call: ChatCall, target: Target, thoughts: ThoughtMemory): Buffer | string {
  const { request } = call;
  const changes: Record<string, unknown> = {};
  if (request.model !== target.model) changes["model"] = target.model;
  const plain = isMistral(target);
  // Streams are metered whether the client asked or not; stream.ts shows the usage only to who asked.
  if (request.stream && (plain || request.stream_options?.include_usage !== true)) {
    changes["stream_options"] = plain ? undefined : { ...request.stream_options, include_usage: true };
  }
  if (plain) changes["user"] = undefined;
  else if (call.user !== null && request.user !== call.user) changes["user"] = call.user;
  if (request.drop_unsupported !== undefined) changes["drop_unsupported"] = undefined;
  const marked = isNarrow(target) && (call.raw === null || call.raw.includes('"cache_control"'));
  const said = reasoned(call, target, thoughts);
  const messages = portableMessages(marked ? unmarked(said, "content") : said, target);
  if (marked && Array.isArray(request.tools)) {
    const tools = unmarked(request.tools, "function");
    if (tools !== request.tools) changes["tools"] = tools;
  }
  if (messages !== request.messages) changes["messages"] = messages;
  return forwardBody(call.raw, request, changes);
}

function embeddingBody(call: EmbeddingCall, target: Target): Buffer | string {
  const changes: Record<string, unknown> = {};
  if (call.request.model !== target.model) changes["model"] = target.model;
  if (isMistral(target)) changes["user"] = undefined;
  else if (call.user !== null && call.request.user !== call.user) changes["user"] = call.user;
  return forwardBody(call.raw, call.request, changes);
}

function isAt(target: Target, hosts: RegExp): boolean {
  return target.baseUrl !== null && hosts.test(parsedUrl(target.baseUrl).hostname);
}

// Mistral's service refuses what is not its own: it counts streams without being asked and knows no users.
function isMistral(target: Target): boolean {
  return isAt(target, /(^|\.)mistral\.ai$/);
}

// Services that refuse what was thought elsewhere, and those of them that refuse any member of which they do not know. Others want their
// reasoning back.
const NARROW = /(^|\.)((openai|azure|groq)\.com|mistral\.ai)$/;
const NARROWEST = /(^|\.)(groq\.com|mistral\.ai)$/;

// DeepSeek and Moonshot refuse calls without what was thought before them; where nobody knows it, they take a blank for it.
const WANTING = /(^|\.)(deepseek\.com|moonshot\.(ai|cn)|kimi\.com)$/;

function reasoned({ request, caller }: ChatCall, target: Target, thoughts: ThoughtMemory): readonly Message[] {
  const { messages } = request;
  if (isNarrow(target)) return messages;
  const known = withReasoning(thoughts, caller, target, messages);
  if (!isAt(target, WANTING) || !known.some(isBare)) return known;
  return known.map((message) => (isBare(message) ? { ...message, reasoning_content: " " } : message));
}

function isNarrow(target: Target): boolean {
  return target.baseUrl === null || isAt(target, NARROW);
}

interface Fit {
  readonly idOf: (id: string) => string;
  readonly narrow: boolean;
  readonly narrowest: boolean;
}

// A conversation that began at another provider, or passed through here: narrow services refuse its reasoning, every OpenAI wire the long
// ids that carry Gemini's signatures, Mistral's all ids but its own. The same array where there is nothing to change.
function portableMessages(messages: readonly Message[], target: Target): readonly Message[] {
  const fit: Fit = {
    idOf: isMistral(target) ? shortId : portable,
    narrow: isNarrow(target),
    narrowest: isAt(target, NARROWEST),
  };
  let changed = false;
  const made = messages.map((message): Message => {
    const fitting = message.role === "tool" ? portableResult(message, fit) : portableAnswer(message, fit);
    if (fitting !== message) changed = true;
    return fitting;
  });
  return changed ? made : messages;
}

// Takes anything: nobody has checked what goes to these wires.
function portable(id: string): string {
  return isSigned(id) ? portableId(id, LONGEST_ID) : id;
}

function portableResult(message: ToolMessage, { idOf }: Fit): Message {
  if (typeof message.tool_call_id !== "string") return message;
  const id = idOf(message.tool_call_id);
  return id === message.tool_call_id ? message : { ...message, tool_call_id: id };
}

function portableAnswer(message: Message, fit: Fit): Message {
  if (message.role !== "assistant") return message;
  const {
    reasoning_content: said,
    reasoning_details: details,
    extra_content: extra,
    images,
    refusal,
    ...rest
  } = message;
  // Given out beside the server's own `reasoning`, and not the server's.
  const doubled = typeof said === "string" && said === message.reasoning;
  const foreign =
    doubled ||
    (fit.narrow && [said, details, extra, images].some((one) => one !== undefined)) ||
    (fit.narrowest && refusal === null);
  const given = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  const calls = given.map((call) => portableCall(call, fit));
  const strange = calls.some((call, index) => call !== given[index]);
  if (!strange && !foreign) return message;
  const kept = fit.narrow ? { ...rest, ...(refusal ? { refusal } : {}) } : { ...message };
  if (doubled) delete (kept as { reasoning_content?: unknown }).reasoning_content;
  return { ...kept, ...(strange && { tool_calls: calls }) };
}

type Call = NonNullable<AssistantMessage["tool_calls"]>[number];

function portableCall(call: Call, { idOf, narrow }: Fit): Call {
  if (typeof call?.id !== "string") return call;
  const id = idOf(call.id);
  if (narrow && "extra_content" in call) {
    const { extra_content: _extra, ...rest } = call;
    return { ...rest, id };
  }
  return id === call.id ? call : { ...call, id };
}
