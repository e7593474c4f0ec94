// What syncs and their runs both read and move: a sync with its last run, its status, what refuses it. A run and its sync move together,
// along the state machines of #contract/states.ts.
import { MagicError } from "#contract/errors.ts";
import type { Environment } from "#contract/protocol.ts";
import { mayMove, type SyncStatus, syncStates } from "#contract/states.ts";
import { type One, type ResourceLimit, refuseOver } from "./resource.ts";
import type { Db } from "./schema.ts";
import type { RunBody, RunRecord, RunTable, SyncBody, SyncRecord, SyncTable } from "./tables/sync.ts";

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

// A sync counts as active while it is active or running.
export async function refuseOverLimit(db: Db, environment: Environment, limit: ResourceLimit | null): Promise<void> {
  if (limit === null) return;
  const { count } = await db
    .selectFrom("sync")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("environment", "=", environment)
    .where("status", "in", ["active", "running"])
    .executeTakeFirstOrThrow();
  refuseOver(count, limit);
}

export async function refuseMissingConnection(db: Db, sync: Ends): Promise<void> {
  const missing = await missingConnections(db, sync);
  if (missing.length === 0) return;
  throw new MagicError(
    "connection_missing",
    `The ${missing.join(" and ")} connection of this sync was deleted; make a new sync on another one.`,
    { extra: { missing } },
  );
}

type Ends = Pick<SyncTable, "environment" | "source_connection" | "destination_connection">;

export async function missingConnections(db: Db, sync: Ends): Promise<("source" | "destination")[]> {
  const found = await db
    .selectFrom("connection")
    .select("id")
    .where("environment", "=", sync.environment)
    .where("id", "in", [sync.source_connection, sync.destination_connection])
    .execute();
  const ids = new Set(found.map(({ id }) => id));
  return (["source", "destination"] as const).filter((end) => !ids.has(sync[`${end}_connection`]));
}

export function readRun({ body, ...row }: RunTable): RunRecord {
  return { ...row, ...(JSON.parse(body) as RunBody) };
}
