import type { Kysely } from "kysely";
import { type DialectName, sequence } from "../dialect.ts";

export async function up(db: Kysely<unknown>, dialect: DialectName): Promise<void> {
  await db.schema
    .createTable("trace")
    .addColumn("sequence", ...sequence(dialect))
    .addColumn("request_id", "text", (column) => column.notNull())
    .addColumn("at", "text", (column) => column.notNull())
    .addColumn("spans", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("trace_request").on("trace").column("request_id").execute();
}
