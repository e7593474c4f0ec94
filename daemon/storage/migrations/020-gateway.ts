import type { Kysely } from "kysely";
import { type DialectName, sequence } from "../dialect.ts";

export async function up(db: Kysely<unknown>, dialect: DialectName): Promise<void> {
  const { schema } = db;
  let ledger = schema.createTable("gateway_ledger").addColumn("sequence", ...sequence(dialect));
  for (const name of ["at", "day", "request_id", "operation", "environment", "provider", "model", "outcome"])
    ledger = ledger.addColumn(name, "text", (column) => column.notNull());
  for (const name of ["token", "end_user", "team", "project", "controller"]) ledger = ledger.addColumn(name, "text");
  for (const name of [
    "status",
    "stream",
    "attempts",
    "requests",
    "input",
    "cached",
    "cache_write",
    "output",
    "reasoning",
  ])
    ledger = ledger.addColumn(name, "bigint", (column) => column.notNull());
  await ledger
    .addColumn("estimated", "bigint", (column) => column.notNull())
    .addColumn("cost_pico", "bigint")
    .addColumn("duration_ms", "bigint", (column) => column.notNull())
    .addColumn("first_token_ms", "bigint")
    .execute();
  await schema.createIndex("gateway_ledger_at").on("gateway_ledger").column("at").execute();
  await schema
    .createTable("gateway_budget")
    .addColumn("key", "text", (column) => column.primaryKey())
    .addColumn("spent", "bigint", (column) => column.notNull())
    .addColumn("lease", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "text", (column) => column.notNull())
    .execute();
  await schema
    .createTable("gateway_key")
    .addColumn("owner", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("fingerprint", "text", (column) => column.notNull())
    .addColumn("request_id", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("answer", "text")
    .addColumn("expires_at", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("gateway_key_primary", ["owner", "key"])
    .execute();
  await schema.createIndex("gateway_key_expires").on("gateway_key").column("expires_at").execute();
}
