// What several daemons on one database need: leases on budgets of each by itself, and who works on an Idempotency-Key.
import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  const { schema } = db;
  await schema
    .createTable("gateway_lease")
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("process", "text", (column) => column.notNull())
    .addColumn("lease", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("gateway_lease_primary", ["key", "process"])
    .execute();
  await sql`insert into gateway_lease (key, process, lease) select key, '', lease from gateway_budget where lease > 0`.execute(
    db,
  );
  await schema.alterTable("gateway_budget").dropColumn("lease").execute();
  await schema
    .alterTable("gateway_key")
    .addColumn("process", "text", (column) => column.notNull().defaultTo(""))
    .execute();
}
