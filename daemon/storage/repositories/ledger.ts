// The gateway's ledger: appended in batches, summed by whom and what it was for.
import { sql } from "kysely";
import { insertRows } from "../insert-rows.ts";
import type { Db } from "../schema.ts";
import { ledgerColumns } from "../tables/gateway.ts";
import { type BudgetChange, change } from "./budget.ts";

/** Appends the rows (JSON: arrays in the order of `ledgerColumns`) and applies what they did to budgets, in one unit. */
export async function append(
  db: Db,
  args: {
    readonly rows: string;
    readonly budgets: readonly BudgetChange[];
    readonly process: string;
    readonly now: string;
  },
): Promise<void> {
  await insertRows(db, "gateway_ledger", ledgerColumns, args.rows);
  await change(db, { changes: args.budgets, process: args.process, now: args.now });
}

const columns = {
  user: "end_user",
  team: "team",
  project: "project",
  provider: "provider",
  day: "day",
  controller: "controller",
} as const;

export type LedgerKey = keyof typeof columns | "model";

export interface LedgerQuery {
  readonly by: LedgerKey;
  /** RFC 3339; from (inclusive) and to (exclusive). */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly environment?: string | undefined;
  readonly where?: Readonly<Partial<Record<LedgerKey, string>>> | undefined;
}

/** Sums per key, the dearest first. Costs are decimal digits: they may pass 2^53. */
export async function usage(db: Db, query: LedgerQuery) {
  const key =
    query.by === "model" ? sql<string>`provider || '/' || model` : sql<string | null>`${sql.ref(columns[query.by])}`;
  let rows = db.selectFrom("gateway_ledger");
  if (query.since) rows = rows.where("at", ">=", query.since);
  if (query.until) rows = rows.where("at", "<", query.until);
  if (query.environment) rows = rows.where("environment", "=", query.environment);
  for (const [name, value] of Object.entries(query.where ?? {})) {
    if (value === undefined) continue;
    const left =
      name === "model" ? sql<string>`provider || '/' || model` : sql.ref<string>(columns[name as keyof typeof columns]);
    rows = rows.where(left, "=", value);
  }
  const sums = await rows
    .select([
      key.as("key"),
      sql<number>`sum(requests)`.as("requests"),
      sql<number>`sum(input + cached + cache_write)`.as("prompt_tokens"),
      sql<number>`sum(output + reasoning)`.as("completion_tokens"),
      sql<number>`sum(cached)`.as("cached_tokens"),
      sql<number>`sum(reasoning)`.as("reasoning_tokens"),
      sql<string>`cast(coalesce(sum(cost_pico), 0) as text)`.as("cost_pico"),
      sql<number>`sum(case when cost_pico is null then 1 else 0 end)`.as("unpriced"),
      sql<string>`coalesce(sum(cost_pico), 0)`.as("order_cost"),
    ])
    .groupBy(key)
    .orderBy(query.by === "day" ? "key" : "order_cost", query.by === "day" ? "asc" : "desc")
    .execute();
  return sums.map(({ order_cost: _, ...sum }) => sum);
}
