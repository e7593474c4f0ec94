import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("sync")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("status", "text", (column) => column.notNull())
    // No foreign keys: a sync outlives its connection, paused.
    .addColumn("source_connection", "text", (column) => column.notNull())
    .addColumn("destination_connection", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addColumn("records_synced", "bigint", (column) => column.notNull().defaultTo(0))
    .addColumn("runs", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("last_run", "text")
    .addColumn("revision", "integer", (column) => column.notNull())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("updated_at", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("sync_listed").on("sync").columns(["environment", "id"]).execute();
  await db.schema.createIndex("sync_source").on("sync").column("source_connection").execute();
  await db.schema.createIndex("sync_destination").on("sync").column("destination_connection").execute();
  await db.schema
    .createTable("run")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sync_id", "text", (column) => column.notNull())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("ordinal", "integer", (column) => column.notNull())
    .addColumn("status", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addUniqueConstraint("run_ordinal", ["sync_id", "ordinal"])
    .execute();
  await db.schema
    .createTable("reject")
    .addColumn("id", "text", (column) => column.notNull())
    .addColumn("run_id", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("column_name", "text")
    .addColumn("reason", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("reject_key", ["run_id", "id"])
    .execute();
}
