// What routing, limits and budgets need to know of a request: its size, the answer it allows, who asks.
import type { Principal } from "#contract/identity.ts";
import type { GatewayCall } from "#daemon/gateway/call.ts";
import { estimateChatTokens, estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import { UNKNOWN_MODEL_OUTPUT } from "#daemon/gateway/pricing/output-limits.ts";
import type { Target } from "#daemon/gateway/providers/adapter.ts";

export interface RequestShape {
  readonly promptTokens: number;
  /** `max_completion_tokens` or `max_tokens`; null when the request names neither. */
  readonly maxTokens: number | null;
  /** How many answers. */
  readonly n: number;
  readonly stream: boolean;
  /** The token's user, else the body's; for stickiness. */
  readonly user: string | null;
}

export function shapeOf(call: Pick<GatewayCall, "operation" | "body" | "principal">): RequestShape {
  const { body, operation } = call;
  const user = call.principal.gateway?.user ?? stringOr(body["user"]);
  if (operation === "embeddings")
    return { promptTokens: estimateEmbeddingTokens(body["input"]), maxTokens: 0, n: 1, stream: false, user };
  return {
    promptTokens: estimateChatTokens(body),
    maxTokens: positive(body["max_completion_tokens"]) ?? positive(body["max_tokens"]),
    n: positive(body["n"]) ?? 1,
    stream: body["stream"] === true,
    user,
  };
}

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

function stringOr(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
