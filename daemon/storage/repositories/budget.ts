// Budgets of the gateway: what each account has spent, and how much may be in flight.
import { sql } from "kysely";
import type { Db } from "../schema.ts";

export interface BudgetChange {
  readonly key: string;
  /** Pico-dollars to add to what is spent. */
  readonly spent: number;
  /** Pico-dollars that may be in flight from now on. */
  readonly lease: number;
}

export async function load(db: Db, { keys }: { readonly keys: readonly string[] }) {
  if (keys.length === 0) return [];
  const rows = await db.selectFrom("gateway_budget").select(["key", "spent"]).where("key", "in", keys).execute();
  // Beyond 2^53 (9,007 dollars) it comes as a bigint; whoever compares it with a limit needs no single pico-dollar of it.
  return rows.map(({ key, spent }) => ({ key, spent: Number(spent) }));
}

export async function change(
  db: Db,
  { changes, now }: { readonly changes: readonly BudgetChange[]; readonly now: string },
): Promise<void> {
  for (const { key, spent, lease } of changes)
    await db
      .insertInto("gateway_budget")
      .values({ key, spent, lease, updated_at: now })
      .onConflict((conflict) =>
        conflict.column("key").doUpdateSet({
          spent: sql<number>`gateway_budget.spent + cast(${spent} as bigint)`,
          lease,
          updated_at: now,
        }),
      )
      .execute();
}

/** Charges the leases of a daemon that died: whether their calls were answered, nobody knows. */
export async function recover(db: Db, { now }: { readonly now: string }) {
  const left = await db
    .selectFrom("gateway_budget")
    .select(["key", "lease as charged"])
    .where("lease", ">", 0)
    .execute();
  if (left.length > 0)
    await db
      .updateTable("gateway_budget")
      .set({ spent: sql<number>`spent + lease`, lease: 0, updated_at: now })
      .where("lease", ">", 0)
      .execute();
  return left.map(({ key, charged }) => ({ key, charged: Number(charged) }));
}
