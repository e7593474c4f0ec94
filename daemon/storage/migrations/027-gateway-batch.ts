// Which batch of the ledger each daemon stored last: one whose COMMIT was not answered is tried again, and must not be stored twice.
import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("gateway_batch")
    .addColumn("process", "text", (column) => column.primaryKey())
    .addColumn("batch", "bigint", (column) => column.notNull())
    .addColumn("stored_at", "text", (column) => column.notNull())
    .execute();
}
