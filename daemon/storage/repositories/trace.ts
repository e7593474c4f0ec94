// Spans of requests, for GET /v1/traces/:request_id. Bounded: the oldest go.
import type { Db } from "../schema.ts";

export interface TraceEntry {
  readonly request_id: string;
  readonly at: string;
  /** A JSON array of spans. */
  readonly spans: string;
}

const KEPT = 20_000;
const CHUNK = 1_000;

export async function append(db: Db, { traces }: { readonly traces: readonly TraceEntry[] }): Promise<void> {
  for (let start = 0; start < traces.length; start += CHUNK)
    await db
      .insertInto("trace")
      .values(traces.slice(start, start + CHUNK))
      .execute();
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
