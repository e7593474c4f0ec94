// The decision before the call: what would be asked of whom, what it may cost, and why the others would not be asked.
import type { Principal } from "#contract/identity.ts";
import type { RouteCandidate, RouteExplanation } from "#contract/wire/route.ts";
import { dollars, type Price } from "#daemon/gateway/pricing/price.ts";
import type { ChatCall } from "#daemon/gateway/providers/adapter.ts";
import { PICO_PER_DOLLAR } from "#shared/money.ts";
import type { BreakerState } from "./breaker.ts";
import type { Considered } from "./candidate.ts";
import type { Plan, RouterParts } from "./plan.ts";
import type { RequestShape } from "./request-shape.ts";

/**
 * The plan up to the first candidate that would refuse the request as invalid: such a refusal is the answer, whoever else stands behind. A call
 * comes to it when its turn comes.
 */
export async function untilRefused(plan: Plan, call: ChatCall): Promise<Plan> {
  for (const [at, { provider, target }] of plan.candidates.entries()) {
    const refusal = await provider.refusal?.(call, target);
    if (!refusal) continue;
    const { message: reason, param } = refusal;
    const out = new Set(plan.candidates.slice(at));
    const considered = plan.considered.map((one) =>
      one.candidate && out.has(one.candidate) ? { ...one, objection: "invalid" as const, reason, param } : one,
    );
    return { ...plan, candidates: plan.candidates.slice(0, at), considered };
  }
  return plan;
}

export function explanationOf(
  plan: Plan,
  shape: RequestShape,
  principal: Principal,
  { breakers, measurements }: Pick<RouterParts, "breakers" | "measurements">,
): RouteExplanation {
  // By the very candidate: a policy may name a model twice.
  const rank = new Map(plan.candidates.map((candidate, index) => [candidate, index + 1]));
  const candidates = plan.considered.map((one) => {
    const state = { breaker: breakers.state(one.model), latencyMs: measurements.latency(one.model, shape.stream) };
    return candidateOf(one, (one.candidate && rank.get(one.candidate)) ?? null, state);
  });
  const first = plan.candidates[0];
  return {
    object: "route_explanation",
    asked: plan.asked,
    environment: principal.environment,
    policy: plan.policy,
    strategy: plan.strategy,
    decision: first
      ? {
          model: first.name,
          provider: first.configured.name,
          estimated_cost_usd: first.worst === null ? null : dollars(first.worst),
        }
      : null,
    prompt_tokens: shape.promptTokens,
    max_tokens: shape.maxTokens,
    retries: plan.retries,
    timeout_ms: plan.timeoutMs,
    total_timeout_ms: plan.totalTimeoutMs,
    candidates: candidates.toSorted((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity)),
  };
}

interface State {
  readonly breaker: BreakerState;
  readonly latencyMs: number | null;
}

function candidateOf(one: Considered, rank: number | null, { breaker, latencyMs }: State): RouteCandidate {
  const { candidate } = one;
  return {
    model: one.model,
    provider: candidate?.configured.name ?? null,
    eligible: rank !== null,
    rank,
    rule: one.objection,
    reason: one.reason,
    estimated_cost_usd: candidate?.worst == null ? null : dollars(candidate.worst),
    price: candidate?.price ? perMillion(candidate.price) : null,
    context_length: candidate?.contextLength ?? null,
    weight: candidate?.weight ?? 1,
    breaker,
    latency_ms: latencyMs === null ? null : Math.round(latencyMs * 10) / 10,
  };
}

/** US dollars per million tokens, at the lowest tier. */
export function perMillion(price: Price): { input: number; output: number; cache_read: number } {
  const rates = price.tiers[0]?.rates;
  const of = (pico: number | undefined) => ((pico ?? 0) * 1e6) / PICO_PER_DOLLAR;
  return { input: of(rates?.input), output: of(rates?.output), cache_read: of(rates?.cacheRead) };
}
