// What several daemons on one database count of a caller's calls together.
import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("gateway_limit")
    .addColumn("caller", "text", (column) => column.primaryKey())
    .addColumn("counts", "text", (column) => column.notNull())
    .execute();
}
