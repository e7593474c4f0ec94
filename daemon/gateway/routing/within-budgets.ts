// What the budgets leave of a route, for its explanation. A call need not look: it reserves, and passes over whom its reservation does not cover.
import type { Account } from "#daemon/gateway/budgets/applicable.ts";
import type { Budgets } from "#daemon/gateway/budgets/budgets.ts";
import type { Considered } from "./candidate.ts";
import type { Plan } from "./plan.ts";

export async function withinBudgets(plan: Plan, budgets: Budgets, accounts: readonly Account[]): Promise<Plan> {
  const considered = await Promise.all(plan.considered.map((one) => held(one, budgets, accounts)));
  const out = new Set(considered.flatMap(({ objection, candidate }) => (objection === "budget" ? [candidate] : [])));
  return { ...plan, considered, candidates: plan.candidates.filter((candidate) => !out.has(candidate)) };
}

async function held(one: Considered, budgets: Budgets, accounts: readonly Account[]): Promise<Considered> {
  if (one.objection || !one.candidate) return one;
  const refusal = await budgets.refusal(accounts, one.candidate.worst ?? 0);
  return refusal ? { ...one, objection: "budget", reason: refusal.message } : one;
}
