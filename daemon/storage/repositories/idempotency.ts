// Idempotency keys: reserve before the work, complete with the answer, release when nothing was done. Used by the core API and
// by the gateway; what the states mean is in daemon/identity/idempotency/state.ts.
import type { Db } from "../schema.ts";
import { byShared } from "../shared-clock.ts";

export interface ReserveKey {
  /** The id of the new reservation, should there be one. */
  readonly id: string;
  readonly owner: string;
  readonly key: string;
  readonly fingerprint: string;
  /** The process that will do the work. */
  readonly process: string;
  readonly now: string;
  readonly expires_at: string;
}

export type ReservedKey =
  | { readonly state: "reserved"; readonly id: string }
  | { readonly state: "in_progress" }
  /** The process that had it is gone. */
  | { readonly state: "unknown"; readonly id: string }
  | { readonly state: "reused" }
  | { readonly state: "done"; readonly id: string; readonly answer: string };

/** Reserves the key, or says what became of the request that had it. One step: two at once cannot both reserve. */
export async function reserve(db: Db, args: ReserveKey): Promise<ReservedKey> {
  const { id, owner, key, fingerprint, process } = args;
  const { now, until: expires_at } = await byShared(db, args.now, args.expires_at);
  await db
    .deleteFrom("idempotency")
    .where("owner", "=", owner)
    .where("key", "=", key)
    .where("expires_at", "<=", now)
    .execute();
  const row = await db
    .selectFrom("idempotency")
    .selectAll()
    .where("owner", "=", owner)
    .where("key", "=", key)
    .executeTakeFirst();
  if (!row) {
    await db
      .insertInto("idempotency")
      .values({ id, owner, key, fingerprint, process, answer: null, created_at: now, expires_at })
      .execute();
    return { state: "reserved", id };
  }
  if (row.fingerprint !== fingerprint) return { state: "reused" };
  if (row.answer !== null) return { state: "done", id: row.id, answer: row.answer };
  const held = row.process === process || (await isAlive(db, row.process, now));
  return held ? { state: "in_progress" } : { state: "unknown", id: row.id };
}

/** Owner of the rows by which processes that share a database say that they live; no caller's: those have three words. */
const PROCESSES = "process";

/** Says that this process lives, until then. */
export async function live(db: Db, args: { process: string; now: string; until: string }) {
  const { process } = args;
  const { now, until } = await byShared(db, args.now, args.until);
  const lease = { id: process, owner: PROCESSES, key: process, fingerprint: "", process, answer: null };
  await db
    .insertInto("idempotency")
    .values({ ...lease, created_at: now, expires_at: until })
    .onConflict((conflict) => conflict.columns(["owner", "key"]).doUpdateSet({ expires_at: until }))
    .execute();
}

/** Whether a process (of other daemons on this database) lives; `now` by the clock that they share. */
export async function isAlive(db: Db, process: string, now: string): Promise<boolean> {
  const lease = await db
    .selectFrom("idempotency")
    .select("id")
    .where("owner", "=", PROCESSES)
    .where("key", "=", process)
    .where("expires_at", ">", now)
    .executeTakeFirst();
  return lease !== undefined;
}

/** Keeps the answer for replays; false where the reservation is gone. */
export async function complete(db: Db, { id, answer }: { id: string; answer: string }): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("idempotency")
    .set({ answer })
    .where("id", "=", id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Nobody will say what became of the request: whoever sends the key again is told so. */
export async function abandon(db: Db, { id }: { id: string }): Promise<void> {
  await db.updateTable("idempotency").set({ process: "" }).where("id", "=", id).where("answer", "is", null).execute();
}

/** Frees the key: nothing was done, it may be used again. */
export async function release(db: Db, { id }: { id: string }): Promise<void> {
  await db.deleteFrom("idempotency").where("id", "=", id).where("answer", "is", null).execute();
}

/** Removes what has expired, at most `limit`; answers how many went. */
export async function sweep(db: Db, args: { now: string; limit: number }): Promise<number> {
  const { limit } = args;
  const { now } = await byShared(db, args.now);
  const { numDeletedRows } = await db
    .deleteFrom("idempotency")
    .where("id", "in", (inner) =>
      inner.selectFrom("idempotency").select("id").where("expires_at", "<=", now).limit(limit),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
