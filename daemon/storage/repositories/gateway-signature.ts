// Thought signatures of tool calls, sealed, by a digest of who made the call and its id.
import type { Db } from "../schema.ts";

export interface SignatureRow {
  readonly key: string;
  readonly signature: string;
}

/** The newer one wins. */
export async function keep(
  db: Db,
  { rows, expires_at }: { readonly rows: readonly SignatureRow[]; readonly expires_at: string },
): Promise<void> {
  for (const row of rows) {
    await db
      .insertInto("gateway_signature")
      .values({ ...row, expires_at })
      .onConflict((conflict) => conflict.column("key").doUpdateSet({ signature: row.signature, expires_at }))
      .execute();
  }
}

export async function find(db: Db, { keys }: { readonly keys: readonly string[] }): Promise<SignatureRow[]> {
  return await db
    .selectFrom("gateway_signature")
    .select(["key", "signature"])
    .where("key", "in", [...keys])
    .execute();
}

/** Forgets what has expired, and the oldest beyond `most`. */
export async function purge(db: Db, { now, most }: { readonly now: string; readonly most: number }): Promise<void> {
  await db.deleteFrom("gateway_signature").where("expires_at", "<=", now).execute();
  const beyond = await db
    .selectFrom("gateway_signature")
    .select("expires_at")
    .orderBy("expires_at", "desc")
    .offset(most)
    .limit(1)
    .executeTakeFirst();
  if (beyond) await db.deleteFrom("gateway_signature").where("expires_at", "<=", beyond.expires_at).execute();
}
