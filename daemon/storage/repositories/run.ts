// Runs of syncs: queued, under way, ended, and what they put into quarantine.
import { MagicError } from "#contract/errors.ts";
import { mayMove, type RunStatus, runStates } from "#contract/states.ts";
import { newId } from "#shared/ids.ts";
import { type Page, paged, type Slice, slice } from "../page.ts";
import type { One, ResourceLimit } from "../resource.ts";
import { runDocument } from "../run-document.ts";
import type { Db } from "../schema.ts";
import { get as findSync, readRun, refuseMissingConnection, refuseOverLimit, writeStatus } from "../sync-rows.ts";
import type { ConnectionBody, Health } from "../tables/connection.ts";
import type { RejectTable, RunBody, RunRecord, SyncRecord } from "../tables/sync.ts";
import { type Claim, finish, holds, put as putJob } from "./job.ts";
import { emit } from "./webhook.ts";

export interface Start extends One {
  readonly runId: string;
  readonly trigger: RunBody["trigger"];
  readonly fullRefresh: boolean;
  readonly objects: readonly string[] | null;
  readonly now: string;
  readonly limit: ResourceLimit | null;
  /** By the schedule: the job that starts it, and when it is due next (ms since the epoch; null: never). */
  readonly occurrence?: { readonly claim: Claim; readonly next: number | null };
}

/**
 * Puts a run in the queue; the run that is under way is answered instead of a second one. Null: the sync is gone, or another process has
 * seen to the occurrence.
 *
 * @throws MagicError `connection_missing`, `conflict` when paused, `limit_reached`.
 */
export async function start(
  db: Db,
  { id, environment, runId, trigger, fullRefresh, objects, now, limit, occurrence }: Start,
): Promise<{ run: RunRecord; sync: SyncRecord; started: boolean } | null> {
  const sync = await findSync(db, { id, environment });
  if (sync === null) return null;
  if (occurrence) {
    if (!(await holds(db, occurrence.claim))) return null;
    // In one step with the run: a process that dies or stands still in between would let the same occurrence run again.
    await finish(db, { ...occurrence.claim, runAt: occurrence.next });
  }
  if (sync.lastRun !== null && runStates[sync.lastRun.status].length > 0)
    return { run: sync.lastRun, sync, started: false };
  await refuseMissingConnection(db, sync);
  if (sync.status === "paused")
    throw new MagicError(
      "conflict",
      "The sync is paused. Resume it first: `magic sync resume`, or PATCH its status to active.",
    );
  if (sync.status === "failed") await refuseOverLimit(db, environment, limit);
  const body: RunBody = {
    trigger,
    full_refresh: fullRefresh,
    objects,
    queued_at: now,
    started_at: null,
    finished_at: null,
    records_read: 0,
    records_synced: 0,
    records_rejected: 0,
    bytes: 0,
    throughput: { records_per_s: 0, bytes_per_s: 0 },
    waiting_for: "a worker",
    errors: [],
    proof: null,
  };
  const ordinal = sync.runs + 1;
  const row = { id: runId, sync_id: id, environment, ordinal, status: "queued" as const };
  await db
    .insertInto("run")
    .values({ ...row, body: JSON.stringify(body) })
    .execute();
  await forget(db, { id, upTo: ordinal - KEPT_RUNS });
  await db.updateTable("sync").set({ runs: ordinal, last_run: runId }).where("id", "=", id).execute();
  await writeStatus(db, { id, status: "running", now });
  // A live run is taken up from the queue, also after a crash; a simulated one ends in the same unit.
  if (environment === "live")
    await putJob(db, {
      ...{ id: newId("job"), queue: "sync-run", key: runId, payload: JSON.stringify({ run: runId }) },
      runAt: Date.parse(now),
    });
  return { run: { ...row, ...body }, sync, started: true };
}

/** Of one sync: realtime ones make thousands a day. */
const KEPT_RUNS = 10_000;

/** More than one, to get below the bound where there were more before; few, for callers wait. */
const FORGOTTEN_AT_ONCE = 20;

/** Removes some of a sync's oldest runs, up to that ordinal; true while there may be more. Only its last one may be under way: it must be beyond. */
export async function forget(db: Db, { id, upTo }: { id: string; upTo: number }): Promise<boolean> {
  if (upTo <= 0) return false;
  const old = await db
    .selectFrom("run")
    .select("id")
    .where("sync_id", "=", id)
    .where("ordinal", "<=", upTo)
    .orderBy("ordinal")
    .limit(FORGOTTEN_AT_ONCE)
    .execute();
  if (old.length === 0) return false;
  const ids = old.map((run) => run.id);
  await db.deleteFrom("reject").where("run_id", "in", ids).execute();
  await db.deleteFrom("run").where("id", "in", ids).execute();
  return old.length === FORGOTTEN_AT_ONCE;
}

export interface End {
  readonly id: string;
  readonly status: "completed" | "failed" | "canceled";
  readonly now: string;
  /** What the run's document gets; where absent it keeps what its progress said. */
  readonly result?: Partial<RunBody>;
  readonly rejects?: readonly Omit<RejectTable, "id" | "run_id">[];
  /** True where rows went, though none may have come. */
  readonly changed?: boolean;
}

/** Ends a run and moves its sync; null when it had ended before, or is gone. */
export async function end(
  db: Db,
  { id, status, now, result = {}, rejects = [], changed = false }: End,
): Promise<RunRecord | null> {
  const row = await db.selectFrom("run").selectAll().where("id", "=", id).executeTakeFirst();
  if (row?.status === "canceled") await countLate(db, readRun(row), result);
  if (row === undefined || !mayMove(runStates, row.status, status) || row.status === status) return null;
  const run: RunRecord = { ...readRun(row), finished_at: now, waiting_for: null, ...result, status };
  await write(db, run);
  for (const [at, reject] of rejects.entries())
    await db
      .insertInto("reject")
      .values({ ...reject, id: `rej_${String(at + 1).padStart(9, "0")}`, run_id: id })
      .execute();
  const sync = await db.selectFrom("sync").selectAll().where("id", "=", row.sync_id).executeTakeFirst();
  if (sync === undefined) return run;
  await addSynced(db, sync.id, run.records_synced);
  if (sync.status === "running")
    await writeStatus(db, { id: sync.id, status: status === "failed" ? "failed" : "active", now });
  await emitEnd(db, run, now, changed);
  if (status === "completed")
    await keepReached(db, { ids: [sync.source_connection, sync.destination_connection], run, now });
  return run;
}

/** Its process was at work when it was canceled, and tells only now what has been committed. */
async function countLate(db: Db, run: RunRecord, result: Partial<RunBody>): Promise<void> {
  const { records_read, records_synced, records_rejected, bytes } = { ...run, ...result };
  // Told by an attempt that another daemon had taken over from.
  if (records_synced < run.records_synced) return;
  await write(db, { ...run, records_read, records_synced, records_rejected, bytes });
  await addSynced(db, run.sync_id, records_synced - run.records_synced);
}

async function addSynced(db: Db, id: string, records: number): Promise<void> {
  await db
    .updateTable("sync")
    .set((eb) => ({ records_synced: eb("records_synced", "+", records) }))
    .where("id", "=", id)
    .execute();
}

/** Both ends of a completed run work, whatever a check found before; nothing is known of one that was changed since the run began. */
async function keepReached(db: Db, { ids, run, now }: { ids: string[]; run: RunRecord; now: string }): Promise<void> {
  const at = run.finished_at ?? now;
  await db.updateTable("connection").set({ last_synced_at: at }).where("id", "in", ids).execute();
  const doubted = await db
    .selectFrom("connection")
    .select(["id", "body", "revision"])
    .where("id", "in", ids)
    .where("status", "in", ["pending", "degraded", "failed"])
    .where("updated_at", "<=", run.started_at ?? "")
    .execute();
  const health: Health = { status: "healthy", checked_at: at, latency_ms: null, message: null };
  for (const { id, body, revision } of doubted) {
    const kept = { ...(JSON.parse(body) as ConnectionBody), health };
    await db
      .updateTable("connection")
      .set({ status: "connected", body: JSON.stringify(kept), revision: revision + 1, updated_at: now })
      .where("id", "=", id)
      .execute();
  }
}

// The sandbox has no webhooks.
async function emitEnd(db: Db, run: RunRecord, now: string, changed: boolean): Promise<void> {
  const { environment, status } = run;
  if (environment !== "live" || status === "canceled") return;
  const data = { sync: run.sync_id, run: runDocument(run) };
  await emit(db, { environment, now, type: status === "completed" ? "sync.completed" : "sync.failed", data });
  if (status === "completed" && (changed || run.records_synced > 0))
    await emit(db, { environment, now, type: "data.changed", data });
}

/** A whole run in one unit, for what completes at once; null when the sync is gone, "stale" when `ordinal` is not the next. */
export async function atOnce(
  db: Db,
  { begin, finish, ordinal }: { begin: Start; finish: Omit<End, "id">; ordinal: number },
): Promise<RunRecord | null | "stale"> {
  const sync = await findSync(db, begin);
  if (sync !== null && sync.runs + 1 !== ordinal) return "stale";
  const begun = await start(db, begin);
  return begun === null ? null : end(db, { ...finish, id: begun.run.id });
}

/** Marks a run as begun, or keeps its progress; false when it has ended meanwhile: then stop. */
export async function progress(db: Db, { id, progress }: { id: string; progress: Partial<RunBody> }): Promise<boolean> {
  const row = await db.selectFrom("run").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined || !mayMove(runStates, row.status, "running")) return false;
  await write(db, { ...readRun(row), ...progress, status: "running" });
  return true;
}

/** @throws MagicError `conflict` when the run has ended. */
export async function cancel(db: Db, { id, environment, now }: One & { now: string }): Promise<RunRecord | null> {
  const run = await get(db, { id, environment });
  if (run === null) return null;
  if (runStates[run.status].length === 0)
    throw new MagicError("conflict", `The run is ${run.status}: it cannot be canceled.`);
  return end(db, { id, status: "canceled", now });
}

export async function get(db: Db, { id, environment }: One): Promise<RunRecord | null> {
  const row = await db
    .selectFrom("run")
    .selectAll()
    .where("id", "=", id)
    .where("environment", "=", environment)
    .executeTakeFirst();
  return row === undefined ? null : readRun(row);
}

export async function list(
  db: Db,
  { syncId, status, page }: { syncId: string; status?: RunStatus | undefined; page: Page },
): Promise<Slice<RunRecord>> {
  let query = db.selectFrom("run").selectAll().where("sync_id", "=", syncId);
  if (status !== undefined) query = query.where("status", "=", status);
  return slice(await paged(query, page).execute(), page, readRun);
}

/** Rejects of a run in reading order. */
export async function listRejects(
  db: Db,
  { runId, limit, after, before }: Page & { runId: string },
): Promise<Slice<RejectTable>> {
  let query = db.selectFrom("reject").selectAll().where("run_id", "=", runId);
  if (after !== undefined) query = query.where("id", ">", after);
  if (before !== undefined) query = query.where("id", "<", before);
  const rows = await query
    .orderBy("id", before === undefined ? "asc" : "desc")
    .limit(limit + 1)
    .execute();
  const kept = rows.slice(0, limit);
  return { rows: before === undefined ? kept : kept.reverse(), more: rows.length > limit };
}

async function write(db: Db, { id, sync_id, environment, ordinal, status, ...body }: RunRecord): Promise<void> {
  await db
    .updateTable("run")
    .set({ sync_id, environment, ordinal, status, body: JSON.stringify(body) })
    .where("id", "=", id)
    .execute();
}
