// Syncs and their runs. A run and its sync move together, along the state machines of #contract/states.ts.
import { MagicError } from "#contract/errors.ts";
import type { Environment } from "#contract/protocol.ts";
import { mayMove, type RunStatus, runStates, type SyncStatus, syncStates } from "#contract/states.ts";
import { newId } from "#shared/ids.ts";
import { refuseOver } from "../limit.ts";
import { type Page, paged, type Slice, slice } from "../page.ts";
import { runDocument } from "../run-document.ts";
import type { Db } from "../schema.ts";
import type { ResourceLimit } from "../tables/connection.ts";
import type { RejectTable, RunBody, RunRecord, RunTable, SyncBody, SyncRecord, SyncTable } from "../tables/sync.ts";
import { put as putJob } from "./job.ts";
import { emit } from "./webhook.ts";

interface One {
  readonly id: string;
  readonly environment: Environment;
}

export interface NewSync {
  readonly id: string;
  readonly environment: Environment;
  readonly source_connection: string;
  readonly destination_connection: string;
  readonly body: SyncBody;
  readonly now: string;
  readonly limit: ResourceLimit | null;
}

/** @throws MagicError `validation_failed` naming a connection that is not there, `limit_reached`. */
export async function create(db: Db, { body, now, limit, ...row }: NewSync): Promise<SyncRecord> {
  const missing = await missingConnections(db, row);
  if (missing.length > 0)
    throw new MagicError("validation_failed", undefined, {
      problems: missing.map((end) => ({
        pointer: `/${end}/connection`,
        code: "not_found",
        detail: `there is no connection ${row[`${end}_connection`]} in this environment`,
      })),
    });
  await refuseOverLimit(db, row.environment, limit);
  const values = { status: "active", records_synced: 0, runs: 0, last_run: null, revision: 1 } as const;
  await db
    .insertInto("sync")
    .values({ ...row, ...values, body: JSON.stringify(body), created_at: now, updated_at: now })
    .execute();
  return { ...row, ...values, ...body, created_at: now, updated_at: now, lastRun: null };
}

type Ends = Pick<SyncTable, "environment" | "source_connection" | "destination_connection">;

async function missingConnections(db: Db, sync: Ends): Promise<("source" | "destination")[]> {
  const found = await db
    .selectFrom("connection")
    .select("id")
    .where("environment", "=", sync.environment)
    .where("id", "in", [sync.source_connection, sync.destination_connection])
    .execute();
  const ids = new Set(found.map(({ id }) => id));
  return (["source", "destination"] as const).filter((end) => !ids.has(sync[`${end}_connection`]));
}

// A sync counts as active while it is active or running.
async function refuseOverLimit(db: Db, environment: Environment, limit: ResourceLimit | null): Promise<void> {
  if (limit === null) return;
  const { count } = await db
    .selectFrom("sync")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("environment", "=", environment)
    .where("status", "in", ["active", "running"])
    .executeTakeFirstOrThrow();
  refuseOver(count, limit);
}

/** One statement: the sync and its last run are of the same moment, also outside a transaction. */
export async function get(db: Db, { id, environment }: One): Promise<SyncRecord | null> {
  const row = await db
    .selectFrom("sync")
    .leftJoin("run", "run.id", "sync.last_run")
    .selectAll("sync")
    .select(["run.ordinal as run_ordinal", "run.status as run_status", "run.body as run_body"])
    .where("sync.id", "=", id)
    .where("sync.environment", "=", environment)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { run_ordinal: ordinal, run_status: status, run_body, body, ...sync } = row;
  const lastRun =
    sync.last_run === null || ordinal === null || status === null || run_body === null
      ? null
      : readRun({ id: sync.last_run, sync_id: id, environment, ordinal, status, body: run_body });
  return { ...sync, ...(JSON.parse(body) as SyncBody), lastRun };
}

export interface SyncFilter {
  readonly environment: Environment;
  readonly status?: SyncStatus | undefined;
  readonly connection?: string | undefined;
  readonly page: Page;
}

export async function list(db: Db, { environment, status, connection, page }: SyncFilter): Promise<Slice<SyncRecord>> {
  let query = db.selectFrom("sync").selectAll().where("environment", "=", environment);
  if (status !== undefined) query = query.where("status", "=", status);
  if (connection !== undefined)
    query = query.where((eb) =>
      eb.or([eb("source_connection", "=", connection), eb("destination_connection", "=", connection)]),
    );
  const { rows, more } = slice(await paged(query, page).execute(), page, (row) => row);
  return { rows: await withLastRuns(db, rows), more };
}

async function withLastRuns(db: Db, rows: readonly SyncTable[]): Promise<SyncRecord[]> {
  const ids = rows.flatMap(({ last_run }) => (last_run === null ? [] : [last_run]));
  const runs = ids.length === 0 ? [] : await db.selectFrom("run").selectAll().where("id", "in", ids).execute();
  const byId = new Map(runs.map((row) => [row.id, readRun(row)]));
  return rows.map(({ body, ...row }) => ({
    ...row,
    ...(JSON.parse(body) as SyncBody),
    lastRun: byId.get(row.last_run ?? "") ?? null,
  }));
}

export interface SyncChange extends One {
  readonly revision: number;
  readonly body: SyncBody;
  /** null: it stays. */
  readonly status: "active" | "paused" | null;
  readonly now: string;
  readonly limit: ResourceLimit | null;
}

export interface SyncChanged {
  readonly sync: SyncRecord;
  /** Runs that a pause has ended. */
  readonly canceledRuns: readonly string[];
}

/** @throws MagicError `connection_missing` or `limit_reached` on a resume. */
export async function update(
  db: Db,
  { id, environment, revision, body, status, now, limit }: SyncChange,
): Promise<SyncChanged | null | "stale"> {
  const current = await get(db, { id, environment });
  if (current === null) return null;
  if (current.revision !== revision) return "stale";
  const canceledRuns: string[] = [];
  if (status === "active" && current.status !== "active" && current.status !== "running") {
    await refuseMissingConnection(db, current);
    await refuseOverLimit(db, environment, limit);
    await writeStatus(db, { id, status, now });
  }
  if (status === "paused" && current.status !== "paused") {
    if (current.lastRun !== null && runStates[current.lastRun.status].length > 0) {
      await endRun(db, { id: current.lastRun.id, status: "canceled", now });
      canceledRuns.push(current.lastRun.id);
    }
    await writeStatus(db, { id, status, now });
  }
  await db
    .updateTable("sync")
    .set({ body: JSON.stringify(body), revision: revision + 1, updated_at: now })
    .where("id", "=", id)
    .execute();
  const sync = await get(db, { id, environment });
  return sync === null ? null : { sync, canceledRuns };
}

async function refuseMissingConnection(db: Db, sync: Ends): Promise<void> {
  const missing = await missingConnections(db, sync);
  if (missing.length === 0) return;
  throw new MagicError(
    "connection_missing",
    `The ${missing.join(" and ")} connection of this sync was deleted; make a new sync on another one.`,
    { extra: { missing } },
  );
}

export async function remove(db: Db, { id, environment }: One): Promise<SyncRecord | null> {
  const sync = await get(db, { id, environment });
  if (sync === null) return null;
  const runs = db.selectFrom("run").select("id").where("sync_id", "=", id);
  await db.deleteFrom("reject").where("run_id", "in", runs).execute();
  await db.deleteFrom("run").where("sync_id", "=", id).execute();
  await db.deleteFrom("sync").where("id", "=", id).execute();
  return sync;
}

export interface StartRun extends One {
  readonly runId: string;
  readonly trigger: RunBody["trigger"];
  readonly fullRefresh: boolean;
  readonly objects: readonly string[] | null;
  readonly now: string;
  readonly limit: ResourceLimit | null;
}

/**
 * Puts a run in the queue; the run that is under way is answered instead of a second one.
 *
 * @throws MagicError `connection_missing`, `conflict` when paused, `limit_reached`.
 */
export async function startRun(
  db: Db,
  { id, environment, runId, trigger, fullRefresh, objects, now, limit }: StartRun,
): Promise<{ run: RunRecord; sync: SyncRecord; started: boolean } | null> {
  const sync = await get(db, { id, environment });
  if (sync === null) return null;
  if (sync.lastRun !== null && runStates[sync.lastRun.status].length > 0)
    return { run: sync.lastRun, sync, started: false };
  await refuseMissingConnection(db, sync);
  if (sync.status === "paused")
    throw new MagicError("conflict", "The sync is paused. Resume it first: PATCH its status to active.");
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
  await forgetRuns(db, { id, upTo: ordinal - KEPT_RUNS });
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

/** Removes a sync's oldest runs, up to that ordinal. Only its last one may be under way: it must be beyond. */
export async function forgetRuns(db: Db, { id, upTo }: { id: string; upTo: number }): Promise<void> {
  if (upTo <= 0) return;
  const old = await db
    .selectFrom("run")
    .select("id")
    .where("sync_id", "=", id)
    .where("ordinal", "<=", upTo)
    .orderBy("ordinal")
    .limit(FORGOTTEN_AT_ONCE)
    .execute();
  if (old.length === 0) return;
  const ids = old.map((run) => run.id);
  await db.deleteFrom("reject").where("run_id", "in", ids).execute();
  await db.deleteFrom("run").where("id", "in", ids).execute();
}

export interface EndRun {
  readonly id: string;
  readonly status: "completed" | "failed" | "canceled";
  readonly now: string;
  /** What the run's document gets; where absent it keeps what its progress said. */
  readonly result?: Partial<RunBody>;
  readonly rejects?: readonly Omit<RejectTable, "id" | "run_id">[];
}

/** Ends a run and moves its sync; null when it had ended before, or is gone. */
export async function endRun(
  db: Db,
  { id, status, now, result = {}, rejects = [] }: EndRun,
): Promise<RunRecord | null> {
  const row = await db.selectFrom("run").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined || !mayMove(runStates, row.status, status) || row.status === status) return null;
  const run: RunRecord = { ...readRun(row), finished_at: now, waiting_for: null, ...result, status };
  await writeRun(db, run);
  for (const [at, reject] of rejects.entries())
    await db
      .insertInto("reject")
      .values({ ...reject, id: `rej_${String(at + 1).padStart(9, "0")}`, run_id: id })
      .execute();
  const sync = await db.selectFrom("sync").selectAll().where("id", "=", row.sync_id).executeTakeFirst();
  if (sync === undefined) return run;
  await db
    .updateTable("sync")
    .set((eb) => ({ records_synced: eb("records_synced", "+", run.records_synced) }))
    .where("id", "=", sync.id)
    .execute();
  if (sync.status === "running")
    await writeStatus(db, { id: sync.id, status: status === "failed" ? "failed" : "active", now });
  await emitEnd(db, run, now);
  if (status === "completed")
    await db
      .updateTable("connection")
      .set({ last_synced_at: run.finished_at ?? now })
      .where("id", "in", [sync.source_connection, sync.destination_connection])
      .execute();
  return run;
}

// The sandbox has no webhooks.
async function emitEnd(db: Db, run: RunRecord, now: string): Promise<void> {
  const { environment, status } = run;
  if (environment !== "live" || status === "canceled") return;
  const data = { sync: run.sync_id, run: runDocument(run) };
  await emit(db, { environment, now, type: status === "completed" ? "sync.completed" : "sync.failed", data });
  if (status === "completed" && run.records_synced > 0)
    await emit(db, { environment, now, type: "data.changed", data });
}

/** A whole run in one unit, for what completes at once; null when the sync is gone, "stale" when `ordinal` is not the next. */
export async function runAtOnce(
  db: Db,
  { start, end, ordinal }: { start: StartRun; end: Omit<EndRun, "id">; ordinal: number },
): Promise<RunRecord | null | "stale"> {
  const sync = await get(db, start);
  if (sync !== null && sync.runs + 1 !== ordinal) return "stale";
  const begun = await startRun(db, start);
  return begun === null ? null : endRun(db, { ...end, id: begun.run.id });
}

/** Marks a run as begun, or keeps its progress; false when it has ended meanwhile: then stop. */
export async function progressRun(
  db: Db,
  { id, progress }: { id: string; progress: Partial<RunBody> },
): Promise<boolean> {
  const row = await db.selectFrom("run").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined || !mayMove(runStates, row.status, "running")) return false;
  await writeRun(db, { ...readRun(row), ...progress, status: "running" });
  return true;
}

/** @throws MagicError `conflict` when the run has ended. */
export async function cancelRun(db: Db, { id, environment, now }: One & { now: string }): Promise<RunRecord | null> {
  const run = await getRun(db, { id, environment });
  if (run === null) return null;
  if (runStates[run.status].length === 0)
    throw new MagicError("conflict", `The run is ${run.status}: it cannot be canceled.`);
  return endRun(db, { id, status: "canceled", now });
}

export async function getRun(db: Db, { id, environment }: One): Promise<RunRecord | null> {
  const row = await db
    .selectFrom("run")
    .selectAll()
    .where("id", "=", id)
    .where("environment", "=", environment)
    .executeTakeFirst();
  return row === undefined ? null : readRun(row);
}

export async function listRuns(
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

/** @throws MagicError `conflict` for a step that the state machine does not know. */
export async function writeStatus(
  db: Db,
  { id, status, now }: { id: string; status: SyncStatus; now: string },
): Promise<void> {
  const { status: from } = await db.selectFrom("sync").select("status").where("id", "=", id).executeTakeFirstOrThrow();
  if (!mayMove(syncStates, from, status)) throw new MagicError("conflict", `A ${from} sync cannot become ${status}.`);
  await db
    .updateTable("sync")
    .set((eb) => ({ status, updated_at: now, revision: eb("revision", "+", 1) }))
    .where("id", "=", id)
    .execute();
}

async function writeRun(db: Db, { id, sync_id, environment, ordinal, status, ...body }: RunRecord): Promise<void> {
  await db
    .updateTable("run")
    .set({ sync_id, environment, ordinal, status, body: JSON.stringify(body) })
    .where("id", "=", id)
    .execute();
}

function readRun({ body, ...row }: RunTable): RunRecord {
  return { ...row, ...(JSON.parse(body) as RunBody) };
}
