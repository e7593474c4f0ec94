import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("gateway_signature")
    .addColumn("key", "text", (column) => column.primaryKey())
    .addColumn("signature", "text", (column) => column.notNull())
    .addColumn("expires_at", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("gateway_signature_expires").on("gateway_signature").column("expires_at").execute();
}
