// OpenAI's chat completions and embeddings, and every server that speaks them (vLLM, Ollama, Groq, Mistral, xAI...): the client's bytes
// go on with the model's name exchanged.
import { forwardBody } from "#daemon/gateway/format/forward.ts";
import type { AssistantMessage, Message } from "#daemon/gateway/format/request.ts";
import type { ChatCall, EmbeddingCall, Target } from "../adapter.ts";
import { isSigned, portableId } from "../tool-id.ts";
import type { Prepared, Wire } from "../wire.ts";
import { readCompletion } from "./completion.ts";
import { openaiFailure } from "./errors.ts";
import { openaiDecoder } from "./stream.ts";

const VENDOR = "https://api.openai.com/v1";
/** Characters that OpenAI takes in the id of a tool call. */
const LONGEST_ID = 40;

export const openaiWire: Wire = openaiFormat("openai", (target, path) => ({
  url: `${(target.baseUrl ?? VENDOR).replace(/\/+$/, "")}${path}`,
  headers: target.credentials.apiKey ? { authorization: `Bearer ${target.credentials.apiKey}` } : {},
}));

/** A wire of OpenAI's format at an address and with headers of its own. */
export function openaiFormat(
  kind: "openai" | "azure",
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
      request: post(target, "/chat/completions", chatBody(call, target), call.traceparent),
      notes: {
        dropped: [],
        responseFormat: call.request.response_format?.type === "json_schema" ? "native" : undefined,
      },
    }),
    prepareEmbedding: (call, target) => post(target, "/embeddings", embeddingBody(call, target)),
    read: readCompletion,
    decoder: openaiDecoder,
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

function chatBody(call: ChatCall, target: Target): Buffer | string {
  const { request } = call;
  const changes: Record<string, unknown> = {};
  if (request.model !== target.model) changes["model"] = target.model;
  // Streams are metered whether the client asked or not; stream.ts shows the usage only to who asked.
  if (request.stream && request.stream_options?.include_usage !== true) {
    changes["stream_options"] = { ...request.stream_options, include_usage: true };
  }
  if (call.user !== null && request.user !== call.user) changes["user"] = call.user;
  if (request.drop_unsupported !== undefined) changes["drop_unsupported"] = undefined;
  const messages = portableMessages(request.messages, target);
  if (messages !== request.messages) changes["messages"] = messages;
  return forwardBody(call.raw, request, changes);
}

function embeddingBody(call: EmbeddingCall, target: Target): Buffer | string {
  const changes: Record<string, unknown> = {};
  if (call.request.model !== target.model) changes["model"] = target.model;
  if (call.user !== null && call.request.user !== call.user) changes["user"] = call.user;
  return forwardBody(call.raw, call.request, changes);
}

// A conversation that began at another provider: OpenAI's own service refuses its reasoning, and every OpenAI wire the long ids that
// carry Gemini's signatures. The same array where there is nothing to change.
function portableMessages(messages: readonly Message[], target: Target): readonly Message[] {
  const own = target.baseUrl === null || /(^|\.)(openai|azure)\.com$/.test(parsedUrl(target.baseUrl).hostname);
  let changed = false;
  const portable = messages.map((message): Message => {
    if (message.role === "tool" && isSigned(message.tool_call_id)) {
      changed = true;
      return { ...message, tool_call_id: portableId(message.tool_call_id, LONGEST_ID) };
    }
    if (message.role !== "assistant") return message;
    const { reasoning_content: said, reasoning_details: details, extra_content: extra, ...rest } = message;
    const foreign = own && (said !== undefined || details !== undefined || extra !== undefined);
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
    const strange = calls.some((call) => isSigned(call?.id) || (own && call && "extra_content" in call));
    if (!strange && !foreign) return message;
    changed = true;
    return { ...(own ? rest : message), ...(strange && { tool_calls: calls.map((call) => portableCall(call, own)) }) };
  });
  return changed ? portable : messages;
}

type Call = NonNullable<AssistantMessage["tool_calls"]>[number];

function portableCall(call: Call, own: boolean): Call {
  const id = isSigned(call?.id) ? { id: portableId(call.id, LONGEST_ID) } : {};
  if (!own || call?.type !== "function") return { ...call, ...id };
  const { extra_content: _extra, ...rest } = call;
  return { ...rest, ...id };
}
