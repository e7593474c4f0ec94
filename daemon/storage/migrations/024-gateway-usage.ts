// The ledger's calls gathered by day and by what they were for. It begins empty: what the ledger holds already is gathered step by step.
import type { Kysely } from "kysely";
import { type DialectName, sequence } from "../dialect.ts";

export async function up(db: Kysely<unknown>, dialect: DialectName): Promise<void> {
  let usage = db.schema
    .createTable("gateway_usage")
    .addColumn("sequence", ...sequence(dialect))
    .addColumn("key", "text", (column) => column.notNull().unique());
  for (const name of ["day", "environment", "provider", "model"])
    usage = usage.addColumn(name, "text", (column) => column.notNull());
  for (const name of ["end_user", "team", "project", "controller"]) usage = usage.addColumn(name, "text");
  for (const name of [
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_pico",
    "unpriced",
  ])
    usage = usage.addColumn(name, "bigint", (column) => column.notNull());
  await usage.execute();
}
