// What routing, limits and budgets need to know of a request: its size, the answer it allows, who asks.
import type { Principal } from "#contract/identity.ts";
import { list } from "#contract/json-object.ts";
import type { GatewayCall } from "#daemon/gateway/call.ts";
import {
  estimateChatTokens,
  estimateEmbeddingTokens,
  longestEmbeddingTokens,
} from "#daemon/gateway/pricing/estimate.ts";
import { UNKNOWN_MODEL_OUTPUT } from "#daemon/gateway/pricing/output-limits.ts";
import type { Target } from "#daemon/gateway/providers/adapter.ts";

export interface RequestShape {
  readonly promptTokens: number;
  /** Those that have to fit into a context together. */
  readonly contextTokens: number;
  /** The larger of `max_completion_tokens` and `max_tokens`, since servers differ in which they obey; null when the request names neither. */
  readonly maxTokens: number | null;
  /** How many answers. */
  readonly n: number;
  readonly stream: boolean;
  /** Audio is sent or asked for: it costs more than text. */
  readonly audio: boolean;
  /** Something is to be kept in the provider's cache for an hour: it costs more to write than what is kept for minutes. */
  readonly hour: boolean;
  /** The token's user, else the body's, cut to 256 characters. */
  readonly user: string | null;
}

export function shapeOf(call: Pick<GatewayCall, "operation" | "body" | "principal">): RequestShape {
  const { body, operation } = call;
  const user = call.principal.gateway?.user ?? nameOr(body["user"]);
  if (operation === "embeddings")
    return {
      promptTokens: estimateEmbeddingTokens(body["input"]),
      contextTokens: longestEmbeddingTokens(body["input"]),
      maxTokens: 0,
      n: 1,
      stream: false,
      audio: false,
      hour: false,
      user,
    };
  const promptTokens = estimateChatTokens(body);
  return {
    promptTokens,
    contextTokens: promptTokens,
    maxTokens: larger(positive(body["max_completion_tokens"]), positive(body["max_tokens"])),
    n: positive(body["n"]) ?? 1,
    stream: body["stream"] === true,
    audio: hasAudio(body),
    hour: cachesForAnHour(body),
    user,
  };
}

function hasAudio({ modalities, messages }: Readonly<Record<string, unknown>>): boolean {
  if (Array.isArray(modalities) && modalities.includes("audio")) return true;
  return list<Part>(messages).some((message) =>
    list<Part>(message?.["content"]).some((part) => part?.["type"] === "input_audio"),
  );
}

function cachesForAnHour({ messages, tools }: Readonly<Record<string, unknown>>): boolean {
  return list<Part>(messages).some(marksAnHour) || list<Part>(tools).some(marksAnHour);
}

function marksAnHour(one: Part): boolean {
  return hasHour(one) || hasHour(one?.["function"]) || list(one?.["content"]).some(hasHour);
}

function hasHour(one: unknown): boolean {
  return (one as { cache_control?: { ttl?: unknown } | null } | null | undefined)?.cache_control?.ttl === "1h";
}

type Part = Readonly<Record<string, unknown>> | null | undefined;

/** The longest answer, in tokens of all choices together, that a target may give to this request. */
export function longestAnswer(shape: RequestShape, target: Target): number {
  return (shape.maxTokens ?? target.maxOutputTokens ?? UNKNOWN_MODEL_OUTPUT) * shape.n;
}

/** By whom a caller without a user is told apart. */
export function callerKey(principal: Principal): string {
  return principal.id ?? principal.type;
}

function positive(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.ceil(value) : null;
}

function larger(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

const LONGEST_NAME = 256;

// A client's word, which becomes a key of budgets and stands in the log and the ledger: short, and storable everywhere.
function nameOr(value: unknown): string | null {
  if (typeof value !== "string" || value === "") return null;
  return value.slice(0, LONGEST_NAME).toWellFormed().replaceAll("\0", "\ufffd");
}
