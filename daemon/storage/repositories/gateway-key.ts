// Idempotency-Keys of completions: taken before the dispatch, answered once.
import type { Db } from "../schema.ts";
import { byShared } from "../shared-clock.ts";
import { isAlive } from "./idempotency.ts";

interface KeyName {
  readonly owner: string;
  readonly key: string;
}

/** Takes the key for a process, or answers the row of who has it, and whether another one that lives is at work on it. An expired row is replaced. */
export async function begin(
  db: Db,
  args: KeyName & {
    readonly fingerprint: string;
    readonly request_id: string;
    readonly process: string;
    readonly now: string;
    readonly expires_at: string;
  },
) {
  const { now: told, expires_at: until, ...rest } = args;
  const shared = await byShared(db, told, until);
  const { now } = shared;
  const row = { ...rest, expires_at: shared.until };
  await db
    .deleteFrom("gateway_key")
    .where("owner", "=", row.owner)
    .where("key", "=", row.key)
    .where("expires_at", "<=", now)
    .execute();
  const taken = await db
    .insertInto("gateway_key")
    .values({ ...row, state: "open", answer: null })
    .onConflict((conflict) => conflict.columns(["owner", "key"]).doNothing())
    .returning("key")
    .executeTakeFirst();
  if (taken) return null;
  const { process, ...found } = await db
    .selectFrom("gateway_key")
    .select(["owner", "key", "fingerprint", "request_id", "process", "state", "answer"])
    .where("owner", "=", row.owner)
    .where("key", "=", row.key)
    .executeTakeFirstOrThrow();
  const alive = found.state === "open" && process !== row.process && (await isAlive(db, process, now));
  return { ...found, alive };
}

export async function finish(db: Db, args: KeyName & { readonly answer: string }): Promise<void> {
  await db
    .updateTable("gateway_key")
    .set({ state: "done", answer: args.answer })
    .where("owner", "=", args.owner)
    .where("key", "=", args.key)
    .execute();
}

interface OpenKey extends KeyName {
  /** Whose it is: another one's is left alone. */
  readonly process: string;
}

/** Gives an open key back: nothing was sent. */
export async function release(db: Db, { owner, key, process }: OpenKey): Promise<void> {
  await db
    .deleteFrom("gateway_key")
    .where("owner", "=", owner)
    .where("key", "=", key)
    .where("state", "=", "open")
    .where("process", "=", process)
    .execute();
}

/** Nobody will say what became of the call: whoever sends the key again is told so, and waits for nothing. */
export async function abandon(db: Db, { owner, key, process }: OpenKey): Promise<void> {
  await db
    .updateTable("gateway_key")
    .set({ process: "" })
    .where("owner", "=", owner)
    .where("key", "=", key)
    .where("state", "=", "open")
    .where("process", "=", process)
    .execute();
}

/** Forgets what has expired, at most `limit`; answers how many went. */
export async function purge(db: Db, args: { readonly now: string; readonly limit: number }): Promise<number> {
  const { limit } = args;
  const { now } = await byShared(db, args.now);
  const expired = await db
    .selectFrom("gateway_key")
    .select(["owner", "key"])
    .where("expires_at", "<=", now)
    .limit(limit)
    .execute();
  for (const { owner, key } of expired)
    await db.deleteFrom("gateway_key").where("owner", "=", owner).where("key", "=", key).execute();
  return expired.length;
}
