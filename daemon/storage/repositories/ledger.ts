// The gateway's ledger: appended in batches, gathered by day and by what the calls were for, summed by one key. Whatever reads it does so
// in steps, since a year of calls read at once would keep everybody else waiting.
import { createHash } from "node:crypto";
import { type SelectQueryBuilder, sql } from "kysely";
import { APPEND, enter, GATHER } from "../gate.ts";
import { insertRows, insertValues } from "../insert-rows.ts";
import type { Db } from "../schema.ts";
import { ledgerColumns } from "../tables/gateway.ts";
import { type BudgetChange, change } from "./budget.ts";
import { get, put } from "./setting.ts";

/**
 * Appends the rows (JSON: arrays in the order of `ledgerColumns`) and applies what they did to budgets, in one unit; nothing where the
 * process stored this batch, by its number, already.
 */
export async function append(
  db: Db,
  args: {
    readonly batch: number;
    readonly rows: string;
    readonly budgets: readonly BudgetChange[];
    readonly process: string;
    readonly now: string;
  },
): Promise<void> {
  await enter(db, APPEND);
  const { batch, process, now } = args;
  const { numInsertedOrUpdatedRows: taken } = await db
    .insertInto("gateway_batch")
    .values({ process, batch, stored_at: now })
    .onConflict((conflict) =>
      conflict.column("process").doUpdateSet({ batch, stored_at: now }).where("gateway_batch.batch", "<", batch),
    )
    .executeTakeFirstOrThrow();
  if (!taken) return;
  await insertRows(db, "gateway_ledger", ledgerColumns, args.rows);
  await change(db, { changes: args.budgets, process, now });
}

const shared = ["day", "environment", "end_user", "team", "project", "controller", "provider", "model"] as const;
const amounts = [
  "requests",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_pico",
  "unpriced",
] as const;
const added = `on conflict (key) do update set ${amounts.map((name) => `${name} = gateway_usage.${name} + excluded.${name}`).join(", ")}`;

/** The setting that says up to which row of the ledger `gateway_usage` goes. */
const GATHERED = "gateway.usage_gathered";

/** Gathers the next `limit` calls of the ledger; true while there may be more. */
export async function gather(db: Db, { limit }: { readonly limit: number }): Promise<boolean> {
  // Of two transactions the one that numbered its rows first may commit last: its rows must not be passed over.
  await enter(db, GATHER);
  const from = Number((await get(db, { key: GATHERED })) ?? 0);
  const next = await db
    .selectFrom((from_) =>
      from_
        .selectFrom("gateway_ledger")
        .select("sequence")
        .where("sequence", ">", from)
        .orderBy("sequence")
        .limit(limit)
        .as("next"),
    )
    .select(({ fn }) => [fn.max("sequence").as("last"), fn.countAll().as("rows")])
    .executeTakeFirstOrThrow();
  if (next.last === null) return false;
  const sums = await db
    .selectFrom("gateway_ledger")
    .where("sequence", ">", from)
    .where("sequence", "<=", next.last)
    .select([...shared, ...sumsOfCalls, sql<number>`coalesce(sum(cost_pico), 0)`.as("cost_pico")])
    .groupBy([...shared])
    .execute();
  const rows = sums.map((sum) => {
    const names = shared.map((name) => sum[name]);
    const key = createHash("sha256").update(JSON.stringify(names)).digest("base64url");
    return [key, ...names, ...amounts.map((name) => sum[name])];
  });
  await insertValues(db, "gateway_usage", ["key", ...shared, ...amounts], rows, added);
  await put(db, { key: GATHERED, value: String(next.last) });
  return Number(next.rows) === limit;
}

/** The setting that says from which day on every call is still there. */
const KEPT_FROM = "gateway.calls_kept_from";

/** The first day (UTC) whose calls are all there; null: every day. */
export async function keptFrom(db: Db, _args: Record<string, never>): Promise<string | null> {
  return await get(db, { key: KEPT_FROM });
}

/** Removes calls of before that day, the oldest first, at most `limit`, once they are gathered; true while there may be more. */
export async function forget(db: Db, { before, limit }: { readonly before: string; readonly limit: number }) {
  // What is gathered must not change meanwhile, and calls of now that are appended must not meet this.
  await enter(db, GATHER);
  const gathered = Number((await get(db, { key: GATHERED })) ?? 0);
  const old = await db
    .selectFrom("gateway_ledger")
    .select("sequence")
    .where("at", "<", before)
    .where("sequence", "<=", gathered)
    .orderBy("at")
    .limit(limit)
    .execute();
  if (old.length === 0) return false;
  const from = await keptFrom(db, {});
  if (from === null || from < before) await put(db, { key: KEPT_FROM, value: before });
  const sequences = old.map(({ sequence }) => sequence);
  await db.deleteFrom("gateway_ledger").where("sequence", "in", sequences).execute();
  return old.length === limit;
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
  readonly environment?: string | undefined;
  readonly where?: Readonly<Partial<Record<LedgerKey, string>>> | undefined;
}

/** Sums per key of the `limit` gathered rows behind `after`, and where to go on; from a day (inclusive) to a day (exclusive). */
export async function gathered(
  db: Db,
  query: LedgerQuery & {
    readonly after: number;
    readonly limit: number;
    readonly fromDay?: string | undefined;
    readonly toDay?: string | undefined;
  },
) {
  const { after, limit, fromDay, toDay } = query;
  const last = await db
    .selectFrom("gateway_usage")
    .select("sequence")
    .where("sequence", ">", after)
    .orderBy("sequence")
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst();
  let rows = db.selectFrom("gateway_usage").where("sequence", ">", after);
  if (last) rows = rows.where("sequence", "<=", last.sequence);
  if (fromDay !== undefined) rows = rows.where("day", ">=", fromDay);
  if (toDay !== undefined) rows = rows.where("day", "<", toDay);
  const key = keyOf(query.by);
  const sums = await fitting(rows, query)
    .select([key.as("key"), ...sumsOfGathered, sql<string>`cast(sum(cost_pico) as text)`.as("cost_pico")])
    .groupBy(key)
    .execute();
  return { sums, next: last?.sequence ?? null };
}

/** Sums per key of the calls themselves; RFC 3339, from (inclusive) and to (exclusive). */
export async function between(db: Db, query: LedgerQuery & { readonly since: string; readonly until: string }) {
  const rows = db.selectFrom("gateway_ledger").where("at", ">=", query.since).where("at", "<", query.until);
  const key = keyOf(query.by);
  return await fitting(rows, query)
    .select([key.as("key"), ...sumsOfCalls, sql<string>`cast(coalesce(sum(cost_pico), 0) as text)`.as("cost_pico")])
    .groupBy(key)
    .execute();
}

const sumsOfCalls = [
  sql<number>`sum(requests)`.as("requests"),
  sql<number>`sum(input + cached + cache_write)`.as("prompt_tokens"),
  sql<number>`sum(output + reasoning)`.as("completion_tokens"),
  sql<number>`sum(cached)`.as("cached_tokens"),
  sql<number>`sum(reasoning)`.as("reasoning_tokens"),
  sql<number>`sum(case when cost_pico is null then 1 else 0 end)`.as("unpriced"),
] as const;

const sumsOfGathered = [
  sql<number>`sum(requests)`.as("requests"),
  sql<number>`sum(prompt_tokens)`.as("prompt_tokens"),
  sql<number>`sum(completion_tokens)`.as("completion_tokens"),
  sql<number>`sum(cached_tokens)`.as("cached_tokens"),
  sql<number>`sum(reasoning_tokens)`.as("reasoning_tokens"),
  sql<number>`sum(unpriced)`.as("unpriced"),
] as const;

function keyOf(by: LedgerKey) {
  return by === "model" ? sql<string>`provider || '/' || model` : sql<string | null>`${sql.ref(columns[by])}`;
}

// biome-ignore lint/suspicious/noExplicitAny: of either table, whose columns of these names are alike
function fitting<Q extends SelectQueryBuilder<any, any, any>>(rows: Q, { environment, where = {} }: LedgerQuery): Q {
  let found = rows;
  if (environment) found = found.where("environment", "=", environment) as Q;
  for (const [name, value] of Object.entries(where))
    if (value !== undefined) found = found.where(keyOf(name as LedgerKey), "=", value) as Q;
  return found;
}
