// The calls that rate limits remember.
import type { Db } from "../schema.ts";

export async function load(db: Db, { name }: { name: string }): Promise<string | undefined> {
  const row = await db.selectFrom("rate_window").select("value").where("name", "=", name).executeTakeFirst();
  return row?.value;
}

export async function save(db: Db, { name, value }: { name: string; value: string }): Promise<void> {
  await db
    .insertInto("rate_window")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}
