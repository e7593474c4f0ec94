// The gateway's ledger: appended in batches, summed by whom and what it was for.
import { PostgresAdapter, sql } from "kysely";
import type { Db } from "../schema.ts";
import { type LedgerTable, ledgerColumns } from "../tables/gateway.ts";
import { type BudgetChange, change } from "./budget.ts";

export type LedgerEntry = Omit<LedgerTable, "sequence">;

/** Rows of one statement; Postgres binds at most 65,535 values. */
const CHUNK = 500;

/**
 * Appends the rows and applies what they did to budgets, in one unit. The rows come as the JSON of an array of arrays in the order of
 * `ledgerColumns`: one string crosses to the storage thread, and SQLite reads it without a bound value for each member.
 */
export async function append(
  db: Db,
  args: { readonly rows: string; readonly budgets: readonly BudgetChange[]; readonly now: string },
): Promise<void> {
  if (args.rows !== "[]") {
    if (db.getExecutor().adapter instanceof PostgresAdapter) await appendToPostgres(db, args.rows);
    else await sql`insert into gateway_ledger (${names}) select ${members} from json_each(${args.rows})`.execute(db);
  }
  await change(db, { changes: args.budgets, now: args.now });
}

const names = sql.join(ledgerColumns.map((name) => sql.ref(name)));
const members = sql.join(ledgerColumns.map((_, index) => sql.raw(`value ->> ${index}`)));

async function appendToPostgres(db: Db, rows: string): Promise<void> {
  const entries = (JSON.parse(rows) as unknown[][]).map(
    (row) => Object.fromEntries(ledgerColumns.map((name, index) => [name, row[index]])) as unknown as LedgerEntry,
  );
  for (let start = 0; start < entries.length; start += CHUNK)
    await db
      .insertInto("gateway_ledger")
      .values(entries.slice(start, start + CHUNK))
      .execute();
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
