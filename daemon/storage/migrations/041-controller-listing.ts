// What is said of versions stands behind their code: reading it there read the code of every version, at each deployment and rollback.
import type { Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  const columns = ["name", "created_at", "version", "digest"];
  await db.schema.createIndex("controller_version_listed").on("controller_version").columns(columns).execute();
}
