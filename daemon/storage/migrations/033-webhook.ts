import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("webhook")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("url", "text", (column) => column.notNull())
    .addColumn("events", "text", (column) => column.notNull())
    .addColumn("status", "text", (column) => column.notNull())
    .addColumn("description", "text")
    .addColumn("secrets", "text", (column) => column.notNull())
    .addColumn("succeeded_at", "text")
    .addColumn("revision", "integer", (column) => column.notNull())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("updated_at", "text", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("delivery")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("webhook_id", "text", (column) => column.notNull())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("event_id", "text", (column) => column.notNull())
    .addColumn("event_type", "text", (column) => column.notNull())
    .addColumn("status", "text", (column) => column.notNull())
    .addColumn("payload", "text", (column) => column.notNull())
    .addColumn("attempts", "text", (column) => column.notNull())
    .addColumn("attempts_before", "integer", (column) => column.notNull())
    .addColumn("queued_at", "text", (column) => column.notNull())
    .addColumn("next_attempt_at", "text")
    .addColumn("created_at", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("delivery_listed").on("delivery").columns(["webhook_id", "id"]).execute();
}
