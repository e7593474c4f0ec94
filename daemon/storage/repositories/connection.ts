// Connections. Deleting one pauses its syncs in the same unit.
import type { Environment } from "#contract/protocol.ts";
import { type ConnectionStatus, connectionStates, mayMove } from "#contract/states.ts";
import { connectionDocument } from "../connection-document.ts";
import { type Page, paged, type Slice, slice } from "../page.ts";
import { type One, type ResourceLimit, refuseOver } from "../resource.ts";
import type { Db } from "../schema.ts";
import { writeStatus } from "../sync-rows.ts";
import type { ConnectionBody, ConnectionRecord, ConnectionTable, Health } from "../tables/connection.ts";
import { cancel as cancelJob } from "./job.ts";
import { end as endRun } from "./run.ts";
import { emit } from "./webhook.ts";

export interface NewConnection extends Omit<ConnectionRecord, "revision"> {}

/** @throws MagicError `limit_reached`. */
export async function create(
  db: Db,
  { connection, limit }: { connection: NewConnection; limit: ResourceLimit | null },
): Promise<ConnectionRecord> {
  if (limit !== null) {
    const { count } = await db
      .selectFrom("connection")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("environment", "=", connection.environment)
      .executeTakeFirstOrThrow();
    refuseOver(count, limit);
  }
  const { name, health, metadata, ...row } = connection;
  const body = JSON.stringify({ name, health, metadata } satisfies ConnectionBody);
  await db
    .insertInto("connection")
    .values({ ...row, body, revision: 1 })
    .execute();
  return { ...connection, revision: 1 };
}

export async function get(db: Db, { id, environment }: One): Promise<ConnectionRecord | null> {
  const row = await db
    .selectFrom("connection")
    .selectAll()
    .where("id", "=", id)
    .where("environment", "=", environment)
    .executeTakeFirst();
  return row === undefined ? null : read(row);
}

export interface ConnectionFilter {
  readonly environment: Environment;
  readonly provider?: string | undefined;
  readonly status?: ConnectionStatus | undefined;
  readonly page: Page;
}

export async function list(
  db: Db,
  { environment, provider, status, page }: ConnectionFilter,
): Promise<Slice<ConnectionRecord>> {
  let query = db.selectFrom("connection").selectAll().where("environment", "=", environment);
  if (provider !== undefined) query = query.where("provider", "=", provider);
  if (status !== undefined) query = query.where("status", "=", status);
  return slice(await paged(query, page).execute(), page, read);
}

export interface ConnectionChange extends One {
  /** The revision that the change was made on. */
  readonly revision: number;
  readonly body: ConnectionBody;
  readonly secret: string | null;
  /** True: it becomes pending, since its settings are to be tested anew. */
  readonly untested?: boolean;
  readonly now: string;
}

/** The changed connection; null when it has gone; "stale" when another change came first. */
export async function update(
  db: Db,
  { id, environment, revision, body, secret, untested = false, now }: ConnectionChange,
): Promise<ConnectionRecord | null | "stale"> {
  const changed = await db
    .updateTable("connection")
    .set({
      ...{ body: JSON.stringify(body), secret, revision: revision + 1, updated_at: now },
      // From wherever it is.
      ...(untested && { status: "pending" as const }),
    })
    .where("id", "=", id)
    .where("environment", "=", environment)
    .where("revision", "=", revision)
    .returningAll()
    .executeTakeFirst();
  if (changed !== undefined) return read(changed);
  return (await get(db, { id, environment })) === null ? null : "stale";
}

export interface Found extends One {
  readonly status: ConnectionStatus;
  readonly health: Health;
  /** What was looked at; absent: whatever it is now. */
  readonly revision?: number;
  readonly now: string;
}

/**
 * Keeps what a check found, with the event where a live connection has just failed; a step that the state machine does not know is left
 * out. Null when it has gone; "stale" when another change came first.
 */
export async function setHealth(
  db: Db,
  { id, environment, status, health, revision, now }: Found,
): Promise<ConnectionRecord | null | "stale"> {
  const current = await get(db, { id, environment });
  if (current === null) return null;
  if (revision !== undefined && revision !== current.revision) return "stale";
  const { name, metadata } = current;
  const next = mayMove(connectionStates, current.status, status) ? status : current.status;
  const row = await db
    .updateTable("connection")
    .set({
      status: next,
      body: JSON.stringify({ name, metadata, health } satisfies ConnectionBody),
      revision: current.revision + 1,
      updated_at: next === current.status ? current.updated_at : now,
    })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  const found = read(row);
  if (environment === "live" && next !== current.status && (next === "failed" || next === "disabled"))
    await emit(db, { environment, type: "connection.failed", data: { connection: connectionDocument(found) }, now });
  return found;
}

export interface Removed {
  readonly paused: readonly string[];
  readonly canceledRuns: readonly string[];
}

/** Removes it, pauses its syncs and cancels their runs, all or nothing; null when there is none. */
export async function remove(db: Db, { id, environment, now }: One & { now: string }): Promise<Removed | null> {
  const gone = await db
    .deleteFrom("connection")
    .where("id", "=", id)
    .where("environment", "=", environment)
    .returning("id")
    .executeTakeFirst();
  if (gone === undefined) return null;
  const syncs = await db
    .selectFrom("sync")
    .select(["id", "status"])
    .where((eb) => eb.or([eb("source_connection", "=", id), eb("destination_connection", "=", id)]))
    .execute();
  const canceledRuns: string[] = [];
  const paused: string[] = [];
  for (const sync of syncs) {
    const runs = await db
      .selectFrom("run")
      .select("id")
      .where("sync_id", "=", sync.id)
      .where("status", "in", ["queued", "running"])
      .execute();
    for (const run of runs) {
      await endRun(db, { id: run.id, status: "canceled", now });
      canceledRuns.push(run.id);
    }
    await cancelJob(db, { queue: "sync-schedule", key: sync.id });
    if (sync.status === "paused") continue;
    await writeStatus(db, { id: sync.id, status: "paused", now });
    paused.push(sync.id);
  }
  return { paused, canceledRuns };
}

function read({ body, ...row }: ConnectionTable): ConnectionRecord {
  return { ...row, ...(JSON.parse(body) as ConnectionBody) };
}
