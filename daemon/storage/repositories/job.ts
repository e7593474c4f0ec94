// The durable queue. Other units put jobs in their own transaction by calling `put` directly.
import type { Db } from "../schema.ts";
import { sharedNow } from "../shared-clock.ts";

export interface NewJob {
  readonly id: string;
  readonly queue: string;
  readonly key: string | null;
  /** JSON. */
  readonly payload: string;
  /** Milliseconds since the epoch. */
  readonly runAt: number;
}

export interface ClaimedJob {
  readonly id: string;
  readonly key: string | null;
  readonly payload: string;
  readonly attempts: number;
  readonly version: number;
}

/** Adds it; where the queue has one of this key, that one takes the new payload and time. */
export async function put(db: Db, { id, queue, key, payload, runAt }: NewJob): Promise<void> {
  await db
    .insertInto("job")
    .values({ id, queue, key, payload, run_at: runAt, attempts: 0, version: 0, owner: null, lease_until: null })
    .onConflict((conflict) =>
      conflict
        .columns(["queue", "key"])
        .doUpdateSet((eb) => ({ payload, run_at: runAt, attempts: 0, version: eb("job.version", "+", 1) })),
    )
    .execute();
}

/** Removes the job of this key, also one that runs: its end changes nothing any more. */
export async function cancel(db: Db, { queue, key }: { queue: string; key: string }): Promise<void> {
  await db.deleteFrom("job").where("queue", "=", queue).where("key", "=", key).execute();
}

export interface Take {
  readonly queue: string;
  readonly owner: string;
  readonly now: number;
  readonly leaseMs: number;
  readonly limit: number;
  /** What the owner is at work on. Whatever else is in its name it was never told of, or could not end: that is due. */
  readonly atWork: readonly string[];
  /** No job is ever put further ahead: one that lies there was put before the clock was set back, and is due. */
  readonly aheadMs?: number | undefined;
}

/** Takes what is due, oldest first, with a lease; a job whose lease has ended is due again. */
export async function claim(
  db: Db,
  { queue, owner, now, leaseMs, limit, atWork, aheadMs }: Take,
): Promise<ClaimedJob[]> {
  const shared = await sharedNow(db, now);
  let free = db.selectFrom("job");
  if (atWork.length > 0) free = free.where("id", "not in", atWork);
  const due = await free
    .select(["id"])
    .where("queue", "=", queue)
    .where((eb) =>
      eb.or([eb("run_at", "<=", now), ...(aheadMs === undefined ? [] : [eb("run_at", ">", now + aheadMs)])]),
    )
    .where((eb) => eb.or([eb("lease_until", "is", null), eb("lease_until", "<=", shared), eb("owner", "=", owner)]))
    .orderBy("run_at")
    .orderBy("id")
    .limit(limit)
    .execute();
  if (due.length === 0) return [];
  const taken = await db
    .updateTable("job")
    .set((eb) => ({ owner, lease_until: shared + leaseMs, attempts: eb("attempts", "+", 1) }))
    .where(
      "id",
      "in",
      due.map(({ id }) => id),
    )
    .returning(["id", "key", "payload", "attempts", "version"])
    .execute();
  return taken;
}

/** Keeps a lease alive; false when it was lost. */
export async function extend(
  db: Db,
  { id, owner, now, leaseMs }: { id: string; owner: string; now: number; leaseMs: number },
): Promise<boolean> {
  const shared = await sharedNow(db, now);
  const { numUpdatedRows } = await db
    .updateTable("job")
    .set({ lease_until: shared + leaseMs })
    .where("id", "=", id)
    .where("owner", "=", owner)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** A job as one process took it. */
export interface Claim {
  readonly id: string;
  readonly owner: string;
  readonly version: number;
}

/** False when another process has taken the job over meanwhile, or it has ended. */
export async function holds(db: Db, { id, owner }: Claim): Promise<boolean> {
  const held = db.selectFrom("job").select("id").where("id", "=", id).where("owner", "=", owner);
  return (await held.executeTakeFirst()) !== undefined;
}

export interface Finish extends Claim {
  /** When to run it again; null: it is done. */
  readonly runAt: number | null;
  /** True: it runs again because it failed, and its attempts are counted on. */
  readonly failed?: boolean | undefined;
}

/** Ends a claim. A job that was put anew meanwhile stays, at its new time. */
export async function finish(db: Db, { id, owner, version, runAt, failed }: Finish): Promise<void> {
  const mine = db.selectFrom("job").select("id").where("id", "=", id).where("owner", "=", owner);
  if (runAt === null) await db.deleteFrom("job").where("id", "in", mine).where("version", "=", version).execute();
  else
    await db
      .updateTable("job")
      .set({ run_at: runAt, ...(failed ? {} : { attempts: 0 }) })
      .where("id", "in", mine)
      .where("version", "=", version)
      .execute();
  await db.updateTable("job").set({ owner: null, lease_until: null }).where("id", "in", mine).execute();
}

/** Frees what an owner holds that is dead. */
export async function releaseOf(db: Db, { owner }: { owner: string }): Promise<void> {
  await db.updateTable("job").set({ owner: null, lease_until: null }).where("owner", "=", owner).execute();
}

/** Frees what other owners hold: after a start on a state that has one owner only. */
export async function releaseOthers(db: Db, { owner }: { owner: string }): Promise<void> {
  await db
    .updateTable("job")
    .set({ owner: null, lease_until: null })
    .where("owner", "is not", null)
    .where("owner", "!=", owner)
    .execute();
}

/** When the next job of the queue that nobody holds is due; null when there is none. */
export async function nextDue(db: Db, { queue }: { queue: string }): Promise<number | null> {
  const row = await db
    .selectFrom("job")
    .select((eb) => eb.fn.min("run_at").as("at"))
    .where("queue", "=", queue)
    .where("owner", "is", null)
    .executeTakeFirst();
  return row?.at ?? null;
}

/** When the jobs of a queue are due, by their keys. */
export async function times(db: Db, { queue }: { queue: string }): Promise<{ key: string | null; run_at: number }[]> {
  return db.selectFrom("job").select(["key", "run_at"]).where("queue", "=", queue).execute();
}

/** True while anything is queued, due now or at a later time. */
export async function pending(db: Db): Promise<boolean> {
  return (await db.selectFrom("job").select("id").limit(1).executeTakeFirst()) !== undefined;
}
