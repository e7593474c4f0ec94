// Which budgets bind a call: magic.yaml's, the token's own and the controller's. An account is one budget in one period (UTC).
import { createHash } from "node:crypto";
import type { Principal } from "#contract/identity.ts";
import type { BudgetConfig } from "#contract/project-gateway.ts";
import type { CallingController } from "#daemon/gateway/call.ts";
import type { Engagement } from "#daemon/gateway/engagement/engagement.ts";
import { picoOf } from "#daemon/gateway/pricing/price.ts";
import { DAY_MS, rfc3339 } from "#shared/clock.ts";
import type { Past } from "./past.ts";

export interface Account {
  readonly key: string;
  /** Whole pico-dollars. */
  readonly limit: number;
  /** For the refusal: whose it is and how large. */
  readonly label: string;
  /** How to raise it. */
  readonly remedy: string;
  readonly alerts: readonly Alert[];
  /** Where it may have begun in the middle of its period. Seldom needed, and not made for nothing. */
  readonly past?: () => Past;
}

/** A warning at a share of a limit, which is another one than the account's where several budgets share the account. */
export interface Alert {
  readonly share: number;
  readonly limit: number;
}

/** By whom a call is made, for budgets and for the ledger. */
export interface Spender {
  readonly token: string | null;
  readonly user: string | null;
  readonly team: string | null;
  readonly project: string | null;
  readonly controller: string | null;
}

const DEFAULT_ALERT = 0.8;

/** The token's identity wins over the body's `user`, which counts only where the token names nobody. */
export function spenderOf(
  principal: Principal,
  bodyUser: string | null,
  controller: CallingController | null,
): Spender {
  const { gateway } = principal;
  return {
    token: principal.id,
    user: gateway?.user ?? bodyUser,
    team: gateway?.team ?? null,
    project: gateway?.project ?? null,
    controller: controller?.name ?? null,
  };
}

const known = new WeakMap<Principal, { readonly made: Made; readonly accounts: readonly Account[] }>();
type Made = readonly [engagement: object, user: string | null, controller: object | null, day: number];

/** The accounts that bind a call. The same array for a caller's next call of the same day: making its texts costs more than using them. */
export function accountsOf(
  engagement: Pick<Engagement, "name" | "budgets">,
  principal: Principal,
  controller: CallingController | null,
  spender: Spender,
  now: number,
): readonly Account[] {
  if (engagement.budgets.length === 0 && !controller && typeof principal.gateway?.budget_usd !== "number") return [];
  const made: Made = [engagement, spender.user, controller, Math.floor(now / DAY_MS)];
  const found = known.get(principal);
  if (found && made.every((part, index) => part === found.made[index])) return found.accounts;
  const accounts = accountsFor(engagement, principal, controller, spender, now);
  known.set(principal, { made, accounts });
  return accounts;
}

function accountsFor(
  { name: engagement, budgets }: Pick<Engagement, "name" | "budgets">,
  principal: Principal,
  controller: CallingController | null,
  spender: Spender,
  now: number,
): Account[] {
  const accounts: Account[] = [];
  for (const budget of budgets) {
    const { scope } = budget;
    const who = scope === "engagement" ? (engagement ?? "default") : spender[scope];
    if (who === null || (budget.name !== undefined && budget.name !== who)) continue;
    const per = budget.per ?? "month";
    const period = rfc3339(now).slice(0, per === "day" ? 10 : 7);
    const limit = picoOf(budget.usd);
    addAccount(accounts, {
      key: `${scope}:${who}:${per}:${period}`,
      limit,
      label: `The budget of the ${scope} "${who}", $${budget.usd} per ${per},`,
      remedy: `Raise it under gateway.budgets in magic.yaml, or wait for the next ${per} (UTC).`,
      alerts: [{ share: budget.alert_at ?? DEFAULT_ALERT, limit }],
      // The ledger has no sums by token.
      ...(scope !== "token" && { past: () => pastOf(budgets, scope, per, period, who) }),
    });
  }
  const own = principal.gateway?.budget_usd;
  if (typeof own === "number" && principal.id)
    accounts.push({
      key: `token:${principal.id}:total`,
      limit: picoOf(own),
      label: `The budget of this token, $${own},`,
      remedy: "Create a token with a larger --budget-usd.",
      alerts: [{ share: DEFAULT_ALERT, limit: picoOf(own) }],
    });
  if (controller?.usdPerDay != null) {
    addAccount(accounts, {
      key: `controller:${controller.name}:day:${rfc3339(now).slice(0, 10)}`,
      limit: picoOf(controller.usdPerDay),
      label: `The budget of the controller "${controller.name}", $${controller.usdPerDay} per day,`,
      remedy: "Raise scopes.llm.usd_per_day in its contract, or wait for the next day (UTC).",
      alerts: [{ share: DEFAULT_ALERT, limit: picoOf(controller.usdPerDay) }],
    });
  }
  return accounts;
}

// Everyone's accounts of the scope where all have a budget, else those of the names that have one.
function pastOf(
  budgets: readonly BudgetConfig[],
  scope: Exclude<BudgetConfig["scope"], "token">,
  per: "day" | "month",
  period: string,
  who: string,
): Past {
  const inPeriod = (place: string) => `${scope}:${place}:${per}:${period}`;
  const since = `${period.padEnd(10, "-01")}T00:00:00Z`;
  if (scope === "engagement") return { key: `past:${inPeriod(who)}`, by: "day", since, accountOf: () => inPeriod(who) };
  const alike = budgets.filter((one) => one.scope === scope && (one.per ?? "month") === per);
  const names = alike.map(({ name }) => name ?? null).sort();
  const all = names.includes(null);
  return {
    key: `past:${inPeriod(all ? "*" : createHash("sha256").update(JSON.stringify(names)).digest("base64url"))}`,
    by: scope,
    since,
    accountOf: (name) => (name !== null && (all || names.includes(name)) ? inPeriod(name) : null),
  };
}

// One for all and one by name, or a contract's beside magic.yaml's: the same spending, so one account, which the smaller limit binds.
function addAccount(accounts: Account[], account: Account): void {
  const index = accounts.findIndex(({ key }) => key === account.key);
  const known = accounts[index];
  if (!known) accounts.push(account);
  else {
    const tighter = account.limit < known.limit ? account : known;
    accounts[index] = { ...known, ...tighter, alerts: [...known.alerts, ...account.alerts] };
  }
}
