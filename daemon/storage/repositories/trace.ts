// Spans of requests, for GET /v1/traces/:request_id. Bounded: the oldest go.
import { insertRows } from "../insert-rows.ts";
import type { Db } from "../schema.ts";
import { traceColumns } from "../tables/trace.ts";

const KEPT = 20_000;

/** @param args rows as JSON: arrays in the order of `traceColumns`. */
export async function append(db: Db, { rows }: { readonly rows: string }): Promise<void> {
  await insertRows(db, "trace", traceColumns, rows);
  const newest = await db
    .selectFrom("trace")
    .select("sequence")
    .orderBy("sequence", "desc")
    .limit(1)
    .executeTakeFirst();
  if (newest)
    await db
      .deleteFrom("trace")
      .where("sequence", "<=", newest.sequence - KEPT)
      .execute();
}

/** The stored arrays of spans of a request, oldest first. */
export async function find(db: Db, { requestId }: { readonly requestId: string }): Promise<string[]> {
  const rows = await db
    .selectFrom("trace")
    .select("spans")
    .where("request_id", "=", requestId)
    .orderBy("sequence")
    .limit(1_000)
    .execute();
  return rows.map(({ spans }) => spans);
}
