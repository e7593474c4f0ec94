// What was spent of a period before its budget was configured. The ledger has it: it is asked once for a scope and a period, when an account
// is needed of which nothing is stored, and whoever spent something gets an account. From then on what is not stored was not spent.
import { isMagicError } from "#contract/errors.ts";
import type { UsageQuery, UsageSum } from "#daemon/gateway/ledger/row.ts";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";
import type { BudgetStore } from "./store.ts";

/** Of the accounts of one scope in one period. */
export interface Past {
  /** Under which it is stored that the ledger was asked. */
  readonly key: string;
  readonly by: "user" | "team" | "project" | "controller" | "day";
  /** RFC 3339. */
  readonly since: string;
  /** Whose account a sum belongs to; null: nobody's. */
  accountOf(sum: string | null): string | null;
}

export type Sums = (query: UsageQuery & { readonly since: string }) => Promise<readonly UsageSum[]>;

/** Stored at once. */
const MOST = 1_000;
const MOST_KNOWN = 1_000;

/** The answer resolves when all that was spent before is stored; true where that is new. */
export function createPasts(store: BudgetStore, sums: Sums, logger: Logger): (past: Past) => Promise<boolean> {
  const known = new Set<string>();
  const underWay = new Map<string, Promise<boolean>>();

  const begin = async ({ key, by, since, accountOf }: Past): Promise<boolean> => {
    const [begun] = await store.load([key]);
    if (begun) return false;
    const spent = new Map<string, number>();
    for (const { key: name, cost_pico: cost } of await sums({ by, since })) {
      const account = accountOf(name);
      if (account !== null && cost !== "0") spent.set(account, (spent.get(account) ?? 0) + Number(cost));
    }
    const accounts = [...spent].map(([account, amount]) => ({ key: account, spent: amount }));
    for (let at = 0; at < accounts.length; at += MOST) await store.begin(accounts.slice(at, at + MOST));
    await store.begin([{ key, spent: 0 }]);
    return true;
  };

  // More names than can be summed: what they spent stays unknown.
  const unknown = (error: unknown): boolean => {
    if (!isMagicError(error) || error.code !== "validation_failed") throw error;
    logger.warn("gateway.budget_past_unknown", errorFields(error));
    return false;
  };

  return async (past) => {
    const { key } = past;
    if (known.has(key)) return false;
    let promise = underWay.get(key);
    promise ??= begin(past)
      .catch(unknown)
      .finally(() => underWay.delete(key));
    underWay.set(key, promise);
    const isNew = await promise;
    if (known.size >= MOST_KNOWN) known.clear();
    known.add(key);
    return isNew;
  };
}
