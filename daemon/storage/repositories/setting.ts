// Small facts about this installation, by key.
import type { Db } from "../schema.ts";

/** The value of `key`, or null. */
export async function get(db: Db, { key }: { key: string }): Promise<string | null> {
  const row = await db.selectFrom("setting").select("value").where("key", "=", key).executeTakeFirst();
  return row?.value ?? null;
}

export async function put(db: Db, { key, value }: { key: string; value: string }): Promise<void> {
  await db
    .insertInto("setting")
    .values({ key, value })
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
    .execute();
}

/** Keeps the value that is there, else stores this one; answers the one that counts. */
export async function putIfAbsent(db: Db, { key, value }: { key: string; value: string }): Promise<string> {
  await db
    .insertInto("setting")
    .values({ key, value })
    .onConflict((conflict) => conflict.column("key").doNothing())
    .execute();
  return (await get(db, { key })) ?? value;
}

export async function remove(db: Db, { key }: { key: string }): Promise<void> {
  await db.deleteFrom("setting").where("key", "=", key).execute();
}
