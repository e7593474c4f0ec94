// How far syncs have come whose destination cannot keep it: it lay in a file of each root before.
import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("sync_state")
    .addColumn("sync_id", "text", (column) => column.notNull())
    .addColumn("stream", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addColumn("revision", "integer", (column) => column.notNull())
    .addPrimaryKeyConstraint("sync_state_key", ["sync_id", "stream"])
    .execute();
}
