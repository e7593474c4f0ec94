// What goes into the gateway and what comes out: the seam between the HTTP routes (or the controllers' broker) and the
// pipeline. Refusals of our own are thrown as MagicError; whatever an upstream said, errors too, is an answer.
import type { Principal } from "#contract/identity.ts";
import type { Span } from "#daemon/telemetry/trace.ts";
import type { AbortNotice } from "#shared/abort.ts";
import type { FrameSink, WholeBody } from "./providers/adapter.ts";

export type Operation = "chat" | "embeddings";

/** The controller on whose behalf a call is made, with what its contract allows it. */
export interface CallingController {
  readonly name: string;
  /** Model names and patterns of `scopes.llm.models`; null: whatever the gateway allows. */
  readonly models: readonly string[] | null;
  /** `scopes.llm.usd_per_day`; null: no limit of its own. */
  readonly usdPerDay: number | null;
}

/** One completion or embedding call. */
export interface GatewayCall {
  readonly operation: Operation;
  readonly principal: Principal;
  readonly requestId: string;
  /** The parsed body: a JSON object, nothing else is known about it yet; the pipeline validates it (format/validate.ts). */
  readonly body: Record<string, unknown>;
  /** The bytes that were parsed: forwarded untouched where nothing has to change; the idempotency fingerprint is over them. Null for in-process callers. */
  readonly raw: Buffer | null;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly idempotencyKey: string | null;
  readonly controller: CallingController | null;
  /** The span that this call is part of; without one, a traceparent header is looked for. */
  readonly span?: Span | undefined;
  /** Aborted when the client has left. An unkeyed upstream call is cancelled then, a keyed one runs to its end. */
  readonly signal: AbortNotice;
  /** `performance.now()` when the request's first byte was handled; overhead and time to first token count from here. */
  readonly startedAt: number;
}

/** A streamed answer: complete server-sent events, the last one `[DONE]` or an error event. */
export interface AnswerStream {
  /** Delivers everything into the sink; to be called once, at once. Resolves when the last frame was written. Never rejects. */
  pipe(sink: FrameSink): Promise<void>;
}

interface AnswerHead {
  readonly status: number;
  /** Lower-case names; without content-length and x-request-id, which the route adds. */
  readonly headers: Record<string, string>;
  /** Nobody has done anything for this call, and it may be made again: an Idempotency-Key is free. */
  readonly undone?: boolean;
  /** For a stream once it has been piped: the daemon was stopped under it, and whether the provider acted is unknown. */
  readonly cut?: () => boolean;
}
export type GatewayAnswer = AnswerHead &
  ({ readonly body: WholeBody; readonly stream?: never } | { readonly stream: AnswerStream; readonly body?: never });

/** The gateway as its callers see it. */
export interface Gateway {
  /** Carries one call out: engagement, route, reserve, attempts, settle, ledger. Throws MagicError for refusals of our own. */
  complete(call: GatewayCall): Promise<GatewayAnswer>;
  /** The models that this principal could call: for `GET /v1/models`. */
  models(principal: Principal): Promise<readonly ModelEntry[]>;
  /** What this principal would be served by under a name, a bare id or `policy:NAME` too; null for what can be no name. */
  model(principal: Principal, name: string): Promise<ModelEntry | null>;
}

/** One model of the list: priced or not, allowed or why not. Prices in US dollars per million tokens. */
export interface ModelEntry {
  /** `provider/model`, an alias or a policy's name. */
  readonly id: string;
  readonly kind: "model" | "alias" | "policy";
  readonly provider: string | null;
  readonly context_length: number | null;
  readonly price: { readonly input: number; readonly output: number; readonly cache_read: number | null } | null;
  readonly allowed: boolean;
  /** Why it is not allowed, naming the rule. */
  readonly reason: string | null;
}
