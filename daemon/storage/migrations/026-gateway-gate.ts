// A table without rows, which stands for others where transactions of several daemons must come one after another: to lock those would
// keep Postgres from vacuuming them, or wait for it.
import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.createTable("gateway_gate").addColumn("none", "text").execute();
}
