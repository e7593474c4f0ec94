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

/** Puts a text at the end of a list of texts, of which the newest stay; answers the list. One step: of two daemons that do so at once, both are in it. */
export async function append(db: Db, { key, value, keep }: { key: string; value: string; keep: number }) {
  const before = JSON.parse((await get(db, { key })) ?? "[]") as string[];
  if (before.at(-1) === value) return before;
  const after = [...before.filter((one) => one !== value), value].slice(-keep);
  await put(db, { key, value: JSON.stringify(after) });
  return after;
}

export async function remove(db: Db, { key }: { key: string }): Promise<void> {
  await db.deleteFrom("setting").where("key", "=", key).execute();
}
