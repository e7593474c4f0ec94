// Syncs: what moves from where to where, and when.
import { MagicError } from "#contract/errors.ts";
import type { Environment } from "#contract/protocol.ts";
import { runStates, type SyncStatus } from "#contract/states.ts";
import { newId } from "#shared/ids.ts";
import { type Page, paged, type Slice, slice } from "../page.ts";
import type { One, ResourceLimit } from "../resource.ts";
import type { Db } from "../schema.ts";
import {
  get,
  missingConnections,
  readRun,
  refuseMissingConnection,
  refuseOverLimit,
  writeStatus,
} from "../sync-rows.ts";
import type { SyncBody, SyncRecord, SyncStateTable, SyncTable } from "../tables/sync.ts";
import { cancel as cancelJob, put as putJob } from "./job.ts";
import { end } from "./run.ts";

export { get, writeStatus };

export interface NewSync {
  readonly id: string;
  readonly environment: Environment;
  readonly source_connection: string;
  readonly destination_connection: string;
  readonly body: SyncBody;
  /** When its first run by the schedule is due (ms since the epoch); null: not by the clock. */
  readonly due: number | null;
  readonly now: string;
  readonly limit: ResourceLimit | null;
}

/** @throws MagicError `validation_failed` naming a connection that is not there, `limit_reached`. */
export async function create(db: Db, { body, due, now, limit, ...row }: NewSync): Promise<SyncRecord> {
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
  if (due !== null) await schedule(db, row.id, due);
  return { ...row, ...values, ...body, created_at: now, updated_at: now, lastRun: null };
}

// In the transaction of what decides it: of two changes at once the later one's time stands.
async function schedule(db: Db, id: string, due: number | null): Promise<void> {
  const queue = "sync-schedule";
  if (due === null) return cancelJob(db, { queue, key: id });
  await putJob(db, { id: newId("job"), queue, key: id, payload: JSON.stringify({ sync: id }), runAt: due });
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
  /** When its next run by the schedule is due (ms since the epoch); null: not by the clock. */
  readonly due: number | null;
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
  { id, environment, revision, body, status, due, now, limit }: SyncChange,
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
      await end(db, { id: current.lastRun.id, status: "canceled", now });
      canceledRuns.push(current.lastRun.id);
    }
    await writeStatus(db, { id, status, now });
  }
  await db
    .updateTable("sync")
    .set({ body: JSON.stringify(body), revision: revision + 1, updated_at: now })
    .where("id", "=", id)
    .execute();
  if (environment === "live") await schedule(db, id, due);
  const sync = await get(db, { id, environment });
  return sync === null ? null : { sync, canceledRuns };
}

export async function remove(db: Db, { id, environment }: One): Promise<SyncRecord | null> {
  const sync = await get(db, { id, environment });
  if (sync === null) return null;
  const runs = db.selectFrom("run").select("id").where("sync_id", "=", id);
  await db.deleteFrom("reject").where("run_id", "in", runs).execute();
  await db.deleteFrom("run").where("sync_id", "=", id).execute();
  await db.deleteFrom("sync_state").where("sync_id", "=", id).execute();
  await db.deleteFrom("sync").where("id", "=", id).execute();
  return sync;
}

type Stream = Pick<SyncStateTable, "sync_id" | "stream">;

/** How far it has come; null: nothing is kept. */
export async function state(db: Db, { sync_id, stream }: Stream): Promise<SyncStateTable | null> {
  const row = await db
    .selectFrom("sync_state")
    .selectAll()
    .where("sync_id", "=", sync_id)
    .where("stream", "=", stream)
    .executeTakeFirst();
  return row ?? null;
}

/** Keeps what follows on `revision` (0: on nothing); false where another one has followed on it, or the sync is gone. */
export async function keepState(db: Db, { sync_id, stream, body, revision }: SyncStateTable): Promise<boolean> {
  const kept = await state(db, { sync_id, stream });
  // Kept by this very call, whose answer was lost on the way.
  if (kept?.revision === revision + 1 && kept.body === body) return true;
  if ((kept?.revision ?? 0) !== revision) return false;
  if ((await db.selectFrom("sync").select("id").where("id", "=", sync_id).executeTakeFirst()) === undefined)
    return false;
  await db
    .insertInto("sync_state")
    .values({ sync_id, stream, body, revision: revision + 1 })
    .onConflict((conflict) => conflict.columns(["sync_id", "stream"]).doUpdateSet({ body, revision: revision + 1 }))
    .execute();
  return true;
}
