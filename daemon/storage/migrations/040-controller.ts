import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("controller_version")
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("version", "text", (column) => column.notNull())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("contract", "text", (column) => column.notNull())
    .addColumn("code", "text", (column) => column.notNull())
    .addColumn("map", "text", (column) => column.notNull())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("controller_version_pk", ["name", "version"])
    .execute();
  await db.schema
    .createTable("controller_alias")
    .addColumn("controller", "text", (column) => column.notNull())
    .addColumn("alias", "text", (column) => column.notNull())
    .addColumn("version", "text", (column) => column.notNull())
    .addColumn("candidate", "text")
    .addColumn("percent", "integer", (column) => column.notNull())
    .addColumn("previous", "text")
    .addColumn("updated_at", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("controller_alias_pk", ["controller", "alias"])
    .execute();
  await db.schema
    .createTable("controller_key")
    .addColumn("controller", "text", (column) => column.notNull())
    .addColumn("environment", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("value", "text", (column) => column.notNull())
    .addColumn("expires_at", "text")
    .addPrimaryKeyConstraint("controller_key_pk", ["controller", "environment", "key"])
    .execute();
}
