// States of provider authorizations: each is taken once.
import type { Db } from "../schema.ts";
import type { OAuthStateTable } from "../tables/oauth.ts";

/** Keeps it, and forgets those that have expired. */
export async function put(db: Db, { state, now }: { state: OAuthStateTable; now: number }): Promise<void> {
  await db.deleteFrom("oauth_state").where("expires_at", "<=", now).execute();
  await db.insertInto("oauth_state").values(state).execute();
}

/** Takes it away; null when there is none, or it was taken before, or has expired. */
export async function take(db: Db, { id, now }: { id: string; now: number }): Promise<string | null> {
  const row = await db.deleteFrom("oauth_state").where("id", "=", id).returningAll().executeTakeFirst();
  return row === undefined || row.expires_at <= now ? null : row.payload;
}
