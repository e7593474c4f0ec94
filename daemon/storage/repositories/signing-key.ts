// The keys of access tokens.
import type { Db } from "../schema.ts";
import type { SigningKeyTable } from "../tables/signing-key.ts";

/** Newest first. */
export async function list(db: Db, _args: Record<string, never>): Promise<SigningKeyTable[]> {
  return db.selectFrom("signing_key").selectAll().orderBy("created_at", "desc").execute();
}

export interface AddSigningKey {
  readonly key: SigningKeyTable;
  /** When the keys that signed until now may be forgotten. */
  readonly retireOthersAt: string;
  readonly now: string;
}

/** Stores a new key, retires those before it, and removes what had retired before. */
export async function add(db: Db, { key, retireOthersAt, now }: AddSigningKey): Promise<void> {
  await db.updateTable("signing_key").set({ retires_at: retireOthersAt }).where("retires_at", "is", null).execute();
  await db.deleteFrom("signing_key").where("retires_at", "<", now).execute();
  await db.insertInto("signing_key").values(key).execute();
}
