import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("credential")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("tier", "text", (column) => column.notNull())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("scopes", "text", (column) => column.notNull())
    .addColumn("gateway", "text")
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("expires_at", "text")
    .addColumn("revoked_at", "text")
    .execute();
  await db.schema.createIndex("credential_by_kind").on("credential").columns(["kind", "id"]).execute();
  await db.schema
    .createTable("credential_secret")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("credential", "text", (column) => column.notNull().references("credential.id"))
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("last_used_at", "text")
    .addColumn("expires_at", "text")
    .execute();
  await db.schema
    .createIndex("credential_secret_by_credential")
    .on("credential_secret")
    .columns(["credential", "id"])
    .execute();
  await db.schema
    .createIndex("credential_secret_by_end")
    .on("credential_secret")
    .columns(["credential", "expires_at"])
    .execute();
}
