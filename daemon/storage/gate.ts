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

/** Of a daemon that was frozen, or is out of reach, inside: the others go on without it. */
const LONGEST_MS = 10_000;

export async function enter(db: Db, mode: typeof APPEND | typeof ROUND | typeof GATHER): Promise<void> {
  if (dialectOf(db) !== "postgres") return;
  const bound = `set local idle_in_transaction_session_timeout = ${LONGEST_MS}`;
  await sql.raw(`${bound}; lock table gateway_gate in ${mode} mode`).execute(db);
}
