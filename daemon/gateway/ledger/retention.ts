// How long the gateway keeps what only grows: calls, which are gathered by day before they go, and what was spent of periods that are
// over. Removed a little at a time, so that nobody waits for it.
import { setTimeout as pause } from "node:timers/promises";
import type { BudgetStore } from "#daemon/gateway/budgets/store.ts";
import { type Clock, DAY_MS, rfc3339 } from "#shared/clock.ts";
import type { LedgerStore } from "./ledger.ts";

const PAUSE_MS = 20;
/** What is spent of a month must outlast it. */
const LEAST_DAYS_OF_BUDGETS = 62;

export interface RetentionParts {
  readonly ledger: Pick<LedgerStore, "gather" | "forget">;
  readonly budgets: Pick<BudgetStore, "forget">;
  readonly clock: Clock;
}

/** Removes what is older than so many days, until `stopped`. */
export async function retain(
  { ledger, budgets, clock }: RetentionParts,
  days: number,
  stopped: () => boolean,
): Promise<void> {
  const before = (age: number) => rfc3339(clock.now() - age * DAY_MS);
  const day = before(days).slice(0, 10);
  await ledger.gather();
  while (!stopped() && (await ledger.forget(day))) await pause(PAUSE_MS, undefined, { ref: false });
  const over = before(Math.max(days, LEAST_DAYS_OF_BUDGETS));
  for (let after: string | null = ""; after !== null && !stopped(); ) {
    after = await budgets.forget(over, after);
    if (after !== null) await pause(PAUSE_MS, undefined, { ref: false });
  }
}
