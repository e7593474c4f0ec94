// What is told of a call when it is over: a ledger row, a log line, metrics, spans. Never a prompt, an answer or an upstream's words:
// those echo prompts.
import type { Spender } from "#daemon/gateway/budgets/applicable.ts";
import type { GatewayCall } from "#daemon/gateway/call.ts";
import { completionTokens, promptTokens, type TokenUsage } from "#daemon/gateway/format/usage.ts";
import type { Ledger } from "#daemon/gateway/ledger/ledger.ts";
import type { LedgerRow } from "#daemon/gateway/ledger/row.ts";
import { costOf, dollars } from "#daemon/gateway/pricing/price.ts";
import type { Failure } from "#daemon/gateway/providers/failure.ts";
import type { AttemptRecord } from "#daemon/gateway/routing/attempts.ts";
import type { Candidate } from "#daemon/gateway/routing/candidate.ts";
import type { Plan } from "#daemon/gateway/routing/plan.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Attributes, Span } from "#daemon/telemetry/trace.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { attribute, providerNames } from "./attributes.ts";
import type { Charge, GatewayMetrics } from "./metrics.ts";

/** A call that is over. */
export interface Finished {
  readonly call: GatewayCall;
  readonly plan: Plan;
  readonly spender: Spender;
  readonly candidate: Candidate;
  readonly attempts: readonly AttemptRecord[];
  readonly outcome: "completed" | "failed" | "aborted";
  readonly status: number;
  readonly failure: Failure | null;
  readonly usage: TokenUsage;
  readonly stream: boolean;
  /** Wall clock of the dispatch: a call that passes midnight counts for the day whose budget it was taken from. */
  readonly at: number;
  /** Milliseconds of the monotonic clock. */
  readonly dispatchedAt: number;
  readonly firstTokenAt: number | null;
  readonly span: Span;
}

export interface Observer {
  finished(over: Finished): void;
  refused(call: GatewayCall, code: string): void;
  /** Answered without a call, by its Idempotency-Key. */
  replayed(call: GatewayCall, status: number): void;
}

export interface ObserverParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: GatewayMetrics;
  readonly ledger: Ledger;
}

/** What was measured of a call that is over, and is not told yet. */
interface Measured {
  readonly over: Finished;
  /** Pico-dollars. */
  readonly cost: number | null;
  readonly durationMs: number;
  readonly firstTokenMs: number | null;
}

export function createObserver({ clock, logger, metrics, ledger }: ObserverParts): Observer {
  let untold: Measured[] = [];

  // What is charged is recorded at once; what people read waits until the answer has left.
  function tellAll(): void {
    const all = untold;
    untold = [];
    for (const one of all) tell(one);
  }

  function tell({ over, cost, durationMs, firstTokenMs }: Measured): void {
    const { call, candidate, usage, attempts } = over;
    metrics.called({
      provider: candidate.configured.name,
      model: candidate.target.model,
      outcome: over.outcome,
      stream: over.stream,
      seconds: durationMs / 1000,
      firstTokenSeconds: firstTokenMs === null ? null : firstTokenMs / 1000,
      overheadSeconds: Math.max(0, over.dispatchedAt - call.startedAt) / 1000,
      promptTokens: promptTokens(usage),
      completionTokens: completionTokens(usage),
      costUsd: cost === null ? null : dollars(cost),
    });
    for (let index = 0; index < attempts.length; index++) {
      const { candidate: tried, failure, charged } = attempts[index] as AttemptRecord;
      const { name } = tried.configured;
      // What the last one was charged is the call's own.
      const charge = charged && index < attempts.length - 1 ? chargeOf(tried, charged) : null;
      metrics.attempted(name, tried.target.model, charge);
      if (failure) metrics.attemptFailed(name, tried.target.model, failure.kind);
    }
    logger.info("gateway.call", lineOf(over, cost, durationMs, firstTokenMs));
    over.span.end(over.outcome === "completed" ? "ok" : "error", () => attributesOf(over, cost, firstTokenMs));
  }

  return {
    finished(over) {
      const { call, firstTokenAt, at } = over;
      const cost = costAt(over.candidate, over.usage);
      const durationMs = clock.monotonic() - call.startedAt;
      const firstTokenMs = firstTokenAt === null ? null : firstTokenAt - call.startedAt;
      for (const row of rowsOf(over, rfc3339(at), durationMs, firstTokenMs)) ledger.record(row);
      if (untold.push({ over, cost, durationMs, firstTokenMs }) === 1) setImmediate(tellAll);
    },
    replayed(call, status) {
      metrics.replayed();
      logger.info("gateway.replayed", { ...whoAsked(call), status });
    },
    refused(call, code) {
      metrics.refused(code);
      logger.info("gateway.refused", { ...whoAsked(call), code });
    },
  };
}

function whoAsked({ requestId, operation, principal }: GatewayCall) {
  const { id, type, environment } = principal;
  return { request_id: requestId, operation, identity: id ?? type, environment };
}

/** Pico-dollars, or null for a model without a price. */
export function costAt(candidate: Candidate, usage: TokenUsage): number | null {
  return candidate.price && costOf(candidate.price, usage);
}

function chargeOf(candidate: Candidate, usage: TokenUsage): Charge {
  const cost = costAt(candidate, usage);
  return {
    promptTokens: promptTokens(usage),
    completionTokens: completionTokens(usage),
    costUsd: cost === null ? null : dollars(cost),
  };
}

/** The call's own row, and one for every earlier attempt that was charged although it failed. */
function rowsOf(over: Finished, at: string, durationMs: number, firstTokenMs: number | null): LedgerRow[] {
  const { call, spender, attempts } = over;
  const row = (
    candidate: Candidate,
    usage: TokenUsage,
    outcome: LedgerRow["outcome"],
    status: number,
    own: boolean,
  ): LedgerRow => ({
    at,
    request_id: call.requestId,
    operation: call.operation,
    environment: candidate.configured.kind === "sandbox" ? "sandbox" : "live",
    token: spender.token,
    user: spender.user,
    team: spender.team,
    project: spender.project,
    controller: spender.controller,
    provider: candidate.configured.name,
    model: candidate.target.model,
    outcome,
    status,
    stream: over.stream,
    attempts: own ? attempts.length : 0,
    requests: own ? 1 : 0,
    input: usage.input,
    cached: usage.cached,
    cache_write: usage.cache_write,
    output: usage.output,
    reasoning: usage.reasoning,
    estimated: usage.estimated === true,
    cost_pico: costAt(candidate, usage),
    duration_ms: Math.round(durationMs),
    first_token_ms: firstTokenMs === null ? null : Math.round(firstTokenMs),
  });
  const rows = [row(over.candidate, over.usage, over.outcome, over.status, true)];
  // The last one is the call itself, however it ended.
  for (let index = 0; index < attempts.length - 1; index++) {
    const { candidate, charged, failure } = attempts[index] as AttemptRecord;
    if (charged) rows.push(row(candidate, charged, "failed", failure?.status ?? 502, false));
  }
  return rows;
}

// One literal: what is undefined is not written.
function lineOf(over: Finished, cost: number | null, durationMs: number, firstTokenMs: number | null) {
  const { call, spender, plan, candidate, usage, attempts } = over;
  return {
    request_id: call.requestId,
    operation: call.operation,
    identity: call.principal.id ?? call.principal.type,
    environment: call.principal.environment,
    user: spender.user ?? undefined,
    team: spender.team ?? undefined,
    project: spender.project ?? undefined,
    controller: spender.controller ?? undefined,
    asked: plan.asked,
    policy: plan.policy ?? undefined,
    provider: candidate.configured.name,
    model: candidate.target.model,
    outcome: over.outcome,
    status: over.status,
    stream: over.stream,
    attempts: attempts.length,
    failures: attempts.some(({ failure }) => failure) ? attempts.flatMap(failureOf) : undefined,
    failure: over.failure?.kind,
    prompt_tokens: promptTokens(usage),
    completion_tokens: completionTokens(usage),
    cached_tokens: usage.cached || undefined,
    reasoning_tokens: usage.reasoning || undefined,
    estimated: usage.estimated,
    cost_usd: cost === null ? null : dollars(cost),
    duration_ms: hundredths(durationMs),
    first_token_ms: firstTokenMs === null ? undefined : hundredths(firstTokenMs),
    overhead_ms: hundredths(over.dispatchedAt - call.startedAt),
  };
}

function failureOf({ candidate, failure, startedAt, endedAt }: AttemptRecord) {
  if (!failure) return [];
  const { kind, upstreamStatus } = failure;
  return [
    { model: candidate.name, kind, upstream_status: upstreamStatus, duration_ms: hundredths(endedAt - startedAt) },
  ];
}

function attributesOf(over: Finished, cost: number | null, firstTokenMs: number | null): Attributes {
  const { call, plan, candidate, attempts, usage, failure } = over;
  const attributes: Record<string, string | number | boolean | null> = {
    [attribute.operation]: call.operation,
    [attribute.provider]: providerNames[candidate.target.kind],
    [attribute.requestModel]: plan.asked,
    [attribute.responseModel]: candidate.target.model,
    [attribute.inputTokens]: promptTokens(usage),
    [attribute.outputTokens]: completionTokens(usage),
    [attribute.cacheReadTokens]: usage.cached,
    [attribute.cacheWriteTokens]: usage.cache_write,
    [attribute.reasoningTokens]: usage.reasoning,
    [attribute.status]: over.status,
    [attribute.policy]: plan.policy,
    [attribute.attempts]: attempts.length,
    [attribute.cost]: cost === null ? null : dollars(cost),
    [attribute.stream]: over.stream,
  };
  if (firstTokenMs !== null) attributes[attribute.firstToken] = hundredths(firstTokenMs);
  if (over.spender.controller) attributes[attribute.controller] = over.spender.controller;
  if (failure) attributes[attribute.errorType] = failure.kind;
  return attributes;
}

function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}
