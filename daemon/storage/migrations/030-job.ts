import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("job")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("queue", "text", (column) => column.notNull())
    .addColumn("key", "text")
    .addColumn("payload", "text", (column) => column.notNull())
    .addColumn("run_at", "bigint", (column) => column.notNull())
    .addColumn("attempts", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("version", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("owner", "text")
    .addColumn("lease_until", "bigint")
    // NULLs are distinct in both dialects.
    .addUniqueConstraint("job_key", ["queue", "key"])
    .execute();
  await db.schema.createIndex("job_due").on("job").columns(["queue", "run_at"]).execute();
}
