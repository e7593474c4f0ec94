// Budgets of the gateway: what each account has spent, and how much each daemon may have in flight.
import { sql } from "kysely";
import { insertValues } from "../insert-rows.ts";
import type { Db } from "../schema.ts";
import { byShared } from "../shared-clock.ts";
import { isAlive } from "./idempotency.ts";

export interface BudgetChange {
  readonly key: string;
  /** Pico-dollars to add to what is spent. */
  readonly spent: number;
  /** Pico-dollars that this process may have in flight from now on. */
  readonly lease: number;
}

/** What is spent, and what other processes may have in flight. */
export async function load(db: Db, { keys, process }: { readonly keys: readonly string[]; readonly process: string }) {
  if (keys.length === 0) return [];
  const spent = await db.selectFrom("gateway_budget").select(["key", "spent"]).where("key", "in", keys).execute();
  const leases = await db.selectFrom("gateway_lease").selectAll().where("key", "in", keys).execute();
  const accounts = new Map<string, { key: string; spent: number; elsewhere: number }>();
  // Beyond 2^53 (9,007 dollars) it comes as a bigint; whoever compares it with a limit needs no single pico-dollar of it.
  for (const row of spent) accounts.set(row.key, { key: row.key, spent: Number(row.spent), elsewhere: 0 });
  for (const { key, process: holder, lease } of leases) {
    if (holder === process) continue;
    const known = accounts.get(key) ?? { key, spent: 0, elsewhere: 0 };
    accounts.set(key, { ...known, elsewhere: known.elsewhere + Number(lease) });
  }
  return [...accounts.values()];
}

/** Stores what was spent from accounts of which nothing is stored yet. */
export async function begin(
  db: Db,
  args: { readonly accounts: readonly { readonly key: string; readonly spent: number }[]; readonly now: string },
): Promise<void> {
  const rows = args.accounts.map(({ key, spent }) => [key, spent, args.now]);
  await insertValues(db, "gateway_budget", ["key", "spent", "updated_at"], rows, "on conflict (key) do nothing");
}

/** Raises what a process may have in flight to `lease`, or to what spending and other processes have left of the limit. Never lowers it. */
export async function raise(
  db: Db,
  args: { readonly key: string; readonly process: string; readonly lease: number; readonly limit: number },
) {
  const { key, process, limit } = args;
  const [account = { key, spent: 0, elsewhere: 0 }] = await load(db, { keys: [key], process });
  const own = await db
    .selectFrom("gateway_lease")
    .select("lease")
    .where("key", "=", key)
    .where("process", "=", process)
    .executeTakeFirst();
  const held = Number(own?.lease ?? 0);
  const lease = Math.max(held, Math.min(args.lease, limit - account.spent - account.elsewhere));
  if (lease > held) await holdLease(db, key, process, lease);
  return { ...account, lease };
}

export async function change(
  db: Db,
  args: { readonly changes: readonly BudgetChange[]; readonly process: string; readonly now: string },
): Promise<void> {
  const { changes, process, now } = args;
  for (const { key, spent, lease } of changes) {
    if (spent > 0) await spend(db, key, spent, now);
    await holdLease(db, key, process, lease);
  }
}

/** Charges the leases of daemons that died: whether their calls were answered, nobody knows. */
export async function recover(db: Db, { process, now }: { readonly process: string; readonly now: string }) {
  const leases = await db.selectFrom("gateway_lease").selectAll().where("process", "!=", process).execute();
  const charged = new Map<string, number>();
  if (leases.length === 0) return [];
  const shared = await byShared(db, now);
  for (const holder of new Set(leases.map((row) => row.process))) {
    if (await isAlive(db, holder, shared.now)) continue;
    for (const { key, lease } of leases.filter((row) => row.process === holder))
      charged.set(key, (charged.get(key) ?? 0) + Number(lease));
    await db.deleteFrom("gateway_lease").where("process", "=", holder).execute();
  }
  for (const [key, lease] of charged) await spend(db, key, lease, now);
  return [...charged].map(([key, lease]) => ({ key, charged: lease }));
}

/**
 * Removes what was spent of periods that are over, and the last batches of daemons that are gone: last changed before then, which must
 * be longer ago than a month, and nothing where that is all there is. Looks at `limit` budgets behind `after`; the place to go on, or null.
 */
export async function forget(
  db: Db,
  { before, after, limit }: { readonly before: string; readonly after: string; readonly limit: number },
): Promise<string | null> {
  // Where nobody has stored anything since, it may be the clock that is ahead, and these the budgets of now.
  const since = await db
    .selectFrom("gateway_batch")
    .select("batch")
    .where("stored_at", ">=", before)
    .limit(1)
    .execute();
  if (since.length === 0) return null;
  await db.deleteFrom("gateway_batch").where("stored_at", "<", before).execute();
  const seen = await db
    .selectFrom("gateway_budget")
    .select(["key", "updated_at"])
    .where("key", ">", after)
    .orderBy("key")
    .limit(limit)
    .execute();
  // A token's own has no period.
  const over = seen.filter(({ key, updated_at }) => updated_at < before && !key.endsWith(":total"));
  const keys = over.map(({ key }) => key);
  if (keys.length > 0) await db.deleteFrom("gateway_budget").where("key", "in", keys).execute();
  return seen.length === limit ? (seen.at(-1)?.key ?? null) : null;
}

async function spend(db: Db, key: string, spent: number, now: string): Promise<void> {
  await db
    .insertInto("gateway_budget")
    .values({ key, spent, updated_at: now })
    .onConflict((conflict) =>
      conflict.column("key").doUpdateSet({
        spent: sql<number>`gateway_budget.spent + cast(${spent} as bigint)`,
        updated_at: now,
      }),
    )
    .execute();
}

async function holdLease(db: Db, key: string, process: string, lease: number): Promise<void> {
  if (lease > 0)
    await db
      .insertInto("gateway_lease")
      .values({ key, process, lease })
      .onConflict((conflict) => conflict.columns(["key", "process"]).doUpdateSet({ lease }))
      .execute();
  else await db.deleteFrom("gateway_lease").where("key", "=", key).where("process", "=", process).execute();
}
