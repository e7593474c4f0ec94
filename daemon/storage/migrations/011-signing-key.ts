import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("signing_key")
    .addColumn("kid", "text", (column) => column.primaryKey())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("retires_at", "text")
    .addColumn("public_jwk", "text", (column) => column.notNull())
    .addColumn("private_sealed", "text", (column) => column.notNull())
    .execute();
}
