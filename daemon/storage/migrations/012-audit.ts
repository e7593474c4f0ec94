import type { Kysely } from "kysely";

/** Also where the table is there already: see migrate.ts. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("audit_entry")
    .ifNotExists()
    // Given by the chain, not by the database: a gap must stay a gap.
    .addColumn("sequence", "bigint", (column) => column.primaryKey())
    .addColumn("id", "text", (column) => column.notNull())
    .addColumn("timestamp", "text", (column) => column.notNull())
    .addColumn("identity_type", "text", (column) => column.notNull())
    .addColumn("identity_id", "text")
    .addColumn("action", "text", (column) => column.notNull())
    .addColumn("resource", "text")
    .addColumn("outcome", "text", (column) => column.notNull())
    .addColumn("status", "integer", (column) => column.notNull())
    .addColumn("request_id", "text", (column) => column.notNull())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("mac", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("audit_entry_by_id").ifNotExists().on("audit_entry").column("id").execute();
  await db.schema.createIndex("audit_entry_by_request").ifNotExists().on("audit_entry").column("request_id").execute();
}
