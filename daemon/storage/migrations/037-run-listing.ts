// A page of a sync's runs put all of them in order before: 30 ms for the ten thousand that are kept.
import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.createIndex("run_listed").on("run").columns(["sync_id", "id"]).execute();
}
