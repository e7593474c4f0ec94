// Lets a unit in before it has read anything: one that waits sees what those before it wrote, which no lock that is taken by a query
// gives in a serializable transaction. On SQLite units come one after another anyway.
import { sql } from "kysely";
import { dialectOf } from "./insert-rows.ts";
import type { Db } from "./schema.ts";

/** Appends to the ledger; beside others, not beside one that gathers it. */
export const APPEND = "row share";
/** A round of the limits; beside appends, not beside another one. */
export const ROUND = "share row exclusive";
/** Gathers the ledger; alone. */
export const GATHER = "exclusive";

export async function enter(db: Db, mode: typeof APPEND | typeof ROUND | typeof GATHER): Promise<void> {
  if (dialectOf(db) === "postgres") await sql`lock table gateway_gate in ${sql.raw(mode)} mode`.execute(db);
}
