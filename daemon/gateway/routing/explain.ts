// The decision before the call: what would be asked of whom, what it may cost, and why the others would not be asked.
import type { Principal } from "#contract/identity.ts";
import type { RouteCandidate, RouteExplanation } from "#contract/wire/route.ts";
import { dollars, PICO_PER_DOLLAR, type Price } from "#daemon/gateway/pricing/price.ts";
import type { Candidate, Considered } from "./candidate.ts";
import type { Plan } from "./plan.ts";
import type { RequestShape } from "./request-shape.ts";

/** The plan without what the budgets do not cover now: `refusal` says why they do not cover an amount, or null. */
export async function withinBudgets(plan: Plan, refusal: (amount: number) => Promise<string | null>): Promise<Plan> {
  const refused = new Map<string, string>();
  const covered: Candidate[] = [];
  for (const candidate of plan.candidates) {
    const { name, worst } = candidate;
    // After a refusal none of these is taken for the first.
    const inPlace = refused.size > 0 && covered.length === 0 ? noneInPlace(candidate) : null;
    const reason = inPlace ?? (await refusal(worst ?? 0));
    if (reason) refused.set(name, reason);
    else covered.push(candidate);
  }
  if (refused.size === 0) return plan;
  const considered = plan.considered.map((one): Considered => {
    const reason = one.objection === null ? refused.get(one.model) : undefined;
    return reason === undefined ? one : { ...one, objection: "budget", reason };
  });
  return { ...plan, candidates: covered, considered };
}

function noneInPlace({ worst, provider }: Candidate): string | null {
  if (provider.kind === "sandbox") return "a simulated answer stands in for none that a budget refuses";
  return worst === null ? "what it costs is unknown, so no budget covers it" : null;
}

export function explanationOf(plan: Plan, shape: RequestShape, principal: Principal): RouteExplanation {
  const rank = new Map(plan.candidates.map((candidate, index) => [candidate.name, index + 1]));
  const candidates = plan.considered.map((one) => candidateOf(one, rank.get(one.model) ?? null));
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

function candidateOf(one: Considered, rank: number | null): RouteCandidate {
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
    breaker: one.breaker,
    latency_ms: one.latencyMs === null ? null : Math.round(one.latencyMs * 10) / 10,
  };
}

/** US dollars per million tokens, at the lowest tier. */
export function perMillion(price: Price): { input: number; output: number; cache_read: number } {
  const rates = price.tiers[0]?.rates;
  const of = (pico: number | undefined) => ((pico ?? 0) * 1e6) / PICO_PER_DOLLAR;
  return { input: of(rates?.input), output: of(rates?.output), cache_read: of(rates?.cacheRead) };
}
