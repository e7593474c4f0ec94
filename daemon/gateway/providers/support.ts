// What each kind of provider can do of OpenAI's chat completions: one table, used for the 400, for dropping, for choosing candidates
// and for `route explain`. A neutral value (`n: 1`, `logprobs: false`, null) asks for nothing. OpenAI's own wires take everything.
import { chatRequestSchema } from "#contract/wire/chat.ts";
import type { ChatRequest, ContentPart } from "#daemon/gateway/format/request.ts";
import { tierNamed } from "#daemon/gateway/format/usage.ts";
import type { ProviderKind, Unsupported } from "./adapter.ts";

type Translated = Exclude<ProviderKind, "openai" | "azure">;

/** Parameters that ask for something, with the kinds that have it. */
export const parameters: readonly {
  readonly param: keyof ChatRequest;
  readonly asks: (request: ChatRequest) => boolean;
  readonly had: readonly Translated[];
  readonly reason: string;
  readonly droppable?: false;
}[] = [
  { param: "n", asks: (r) => (r.n ?? 1) > 1, had: ["google", "sandbox"], reason: "it gives one choice a request" },
  { param: "seed", asks: (r) => set(r.seed), had: ["google", "sandbox"], reason: "it has no seed" },
  {
    param: "logprobs",
    asks: (r) => r.logprobs === true,
    had: ["google", "sandbox"],
    reason: "it gives no log probabilities",
  },
  {
    param: "logit_bias",
    asks: (r) => Object.keys(r.logit_bias ?? {}).length > 0,
    had: ["sandbox"],
    reason: "it cannot weigh single tokens",
  },
  {
    param: "presence_penalty",
    asks: (r) => (r.presence_penalty ?? 0) !== 0,
    had: ["google", "sandbox"],
    reason: "it has no such penalty",
  },
  {
    param: "frequency_penalty",
    asks: (r) => (r.frequency_penalty ?? 0) !== 0,
    had: ["google", "sandbox"],
    reason: "it has no such penalty",
  },
  {
    param: "temperature",
    asks: (r) => (r.temperature ?? 0) > 1,
    had: ["google", "sandbox"],
    reason: "its temperature ends at 1",
  },
  {
    param: "parallel_tool_calls",
    asks: (r) => r.parallel_tool_calls === false && (r.tools?.length ?? 0) > 0,
    had: ["anthropic", "sandbox"],
    reason: "it cannot be kept from calling tools in parallel",
  },
  {
    param: "verbosity",
    asks: (r) => set(r.verbosity) && r.verbosity !== "medium",
    had: ["sandbox"],
    reason: "it has no verbosity",
  },
  { param: "prediction", asks: (r) => set(r.prediction), had: ["sandbox"], reason: "it has no predicted outputs" },
  { param: "web_search_options", asks: (r) => set(r.web_search_options), had: [], reason: "no web search is offered" },
  { param: "moderation", asks: (r) => set(r.moderation), had: [], reason: "it does not moderate" },
  { param: "store", asks: (r) => r.store === true, had: ["google", "sandbox"], reason: "it stores no completions" },
  {
    param: "service_tier",
    asks: (r) => set(r.service_tier) && r.service_tier !== "auto" && r.service_tier !== "default",
    had: ["google", "bedrock", "sandbox"],
    reason: "no service tier of it is offered",
  },
  {
    param: "modalities",
    asks: (r) => r.modalities?.includes("audio") ?? false,
    had: [],
    reason: "it does not answer in audio",
    droppable: false,
  },
  { param: "audio", asks: (r) => set(r.audio), had: [], reason: "it does not answer in audio", droppable: false },
];

/** The tier as Gemini and Bedrock call it as well; undefined for the usual one. */
export function sharedTier({ service_tier: named }: ChatRequest): "flex" | "priority" | undefined {
  const tier = tierNamed(named);
  return tier === "flex" || tier === "priority" ? tier : undefined;
}

/** OpenAI's other tiers, which they have not. */
export function ownTier(request: ChatRequest): Unsupported[] {
  if (!tierNamed(request.service_tier) || sharedTier(request)) return [];
  return [{ param: "service_tier", reason: "its service tiers are flex and priority", droppable: true }];
}

/** Parameters that change nothing of the answer: left out without a refusal, and said in `x-magic-dropped`. */
const hints: readonly { readonly param: keyof ChatRequest; readonly had: readonly Translated[] }[] = [
  { param: "metadata", had: ["sandbox"] },
  { param: "safety_identifier", had: ["anthropic", "sandbox"] },
  { param: "prompt_cache_key", had: ["sandbox"] },
  { param: "prompt_cache_retention", had: ["sandbox"] },
  { param: "prompt_cache_options", had: ["sandbox"] },
];

/** Those of them that this kind of provider is not told. */
export function hintsLeftOut(kind: ProviderKind, request: ChatRequest): readonly string[] {
  if (kind === "openai" || kind === "azure") return [];
  const left = hints.filter(({ param, had }) => !had.includes(kind) && set(request[param])).map(({ param }) => param);
  return kind === "sandbox" ? left : [...left, ...messageHints(request)];
}

// No other wire has a place for them.
function messageHints({ messages }: ChatRequest): readonly string[] {
  const found: string[] = [];
  // A function's name is no hint: it says which one gave the result.
  if (messages.some((message) => message.role !== "function" && "name" in message && set(message.name)))
    found.push("messages.name");
  const wished = messages.some(({ content }) => Array.isArray(content) && content.some(isDetailed));
  if (wished) found.push("messages.content.image_url.detail");
  return found;
}

function isDetailed(part: ContentPart): boolean {
  return part.type === "image_url" && set(part.image_url.detail) && part.image_url.detail !== "auto";
}

const known = new Set(Object.keys(chatRequestSchema.properties));

/** What this kind of provider cannot do of the request, in the table's order. Empty for OpenAI's wires. */
export function supportOf(kind: ProviderKind, request: ChatRequest): readonly Unsupported[] {
  if (kind === "openai" || kind === "azure") return [];
  const found: Unsupported[] = [];
  for (const { param, asks, had, reason, droppable } of parameters) {
    if (!had.includes(kind) && asks(request)) found.push({ param, reason, droppable: droppable ?? true });
  }
  for (const param of Object.keys(request)) {
    if (!known.has(param))
      found.push({ param, reason: "OpenAI's chat completions have no such parameter", droppable: true });
  }
  if (Array.isArray(request.tools)) {
    for (const [index, tool] of request.tools.entries()) {
      if (tool?.type === "custom") {
        found.push({ param: `tools[${index}]`, reason: "it has no custom tools, only functions", droppable: false });
      }
    }
  }
  return found.concat(contentOf(kind, request));
}

function contentOf(kind: Translated, request: ChatRequest): Unsupported[] {
  const found: Unsupported[] = [];
  for (const [m, message] of request.messages.entries()) {
    if (message.role === "assistant") {
      if (set(message.audio))
        found.push({ param: `messages[${m}].audio`, reason: "it has no audio of earlier answers", droppable: false });
      for (const [c, call] of (message.tool_calls ?? []).entries()) {
        if (call.type === "custom")
          found.push({ param: `messages[${m}].tool_calls[${c}]`, reason: "it has no custom tools", droppable: false });
      }
    }
    if (!Array.isArray(message.content)) continue;
    for (const [p, part] of message.content.entries()) {
      const at = `messages[${m}].content[${p}]`;
      if (part?.type === "input_audio") {
        found.push({ param: `${at}.input_audio`, reason: "it does not listen to audio", droppable: false });
      } else if (part?.type === "file" && kind !== "sandbox" && typeof part.file?.file_data !== "string") {
        found.push({ param: `${at}.file`, reason: "files go by file_data, ids are OpenAI's own", droppable: false });
      }
    }
  }
  return found;
}

function set(value: unknown): boolean {
  return value !== undefined && value !== null;
}
