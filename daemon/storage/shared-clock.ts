// The clock that daemons on one database have in common: Postgres's own. One of them whose clock is wrong, or jumps, must neither take
// from the others what they have under way nor hold anything for as long as it is wrong.
import { sql } from "kysely";
import { rfc3339 } from "#shared/clock.ts";
import { dialectOf } from "./insert-rows.ts";
import type { Db } from "./schema.ts";

/** Milliseconds since the epoch; with SQLite, which one daemon has to itself, the caller's `now`. */
export async function sharedNow(db: Db, now: number): Promise<number> {
  if (dialectOf(db) === "sqlite") return now;
  const query = sql<{ now: number }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now`;
  return Math.trunc(Number((await query.execute(db)).rows[0]?.now));
}

/** The caller's moments, by that clock. */
export async function byShared(db: Db, now: string, until = now): Promise<{ now: string; until: string }> {
  const shared = await sharedNow(db, Date.parse(now));
  return { now: rfc3339(shared), until: rfc3339(shared + Date.parse(until) - Date.parse(now)) };
}
