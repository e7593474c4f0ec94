// MySQL and MariaDB as a destination: rows and state in one InnoDB transaction. A full refresh deletes and inserts in it, so readers
// see the old rows until it commits, and a run that dies leaves them.
import { createHash } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import type { Reject, SyncFailure } from "#contract/sync.ts";
import {
  type CommittedState,
  DELETED_AT,
  type Destination,
  mayBeMarked,
  type OpenRequest,
  type WritePlan,
  type WriteSession,
} from "../../engine/destination.ts";
import { leftNull, widened } from "../../engine/evolution.ts";
import { formatObjectName } from "../../engine/name.ts";
import type { Column, Row } from "../../engine/types.ts";
import { killedBy } from "../killed-by.ts";
import { type Translating, translating } from "../translating.ts";
import { describeTable, type MysqlTable } from "./catalog.ts";
import { connectMysql, ident, type MysqlLink } from "./connect.ts";
import { deleteMissing } from "./delete-missing.ts";
import { mysqlError } from "./errors.ts";
import { checkKeys, hasUniqueKey } from "./keys.ts";
import { hasOwnColumns, makeStage, type Stage, upsertStaged } from "./merge-stage.ts";
import { createOrphans, type Orphans, type PlacedRow } from "./orphans.ts";
import { prepareTable } from "./prepare.ts";
import { deleteUnasked, type Referring, referringTo, referringToItself, settle } from "./referring.ts";
import { lock, readState, writeState } from "./state-table.ts";
import { type Form, formOf, type InsertTarget, insertRows } from "./write-rows.ts";

export function mysqlDestination(options: { url: string; address?: string }): Destination {
  const links: MysqlLink[] = [];
  return {
    open: async (request) => {
      const link = await connectMysql({ ...options, side: "destination" });
      links.push(link);
      return openSession(link, request);
    },
    close: async () => {
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

async function openSession(link: MysqlLink, request: OpenRequest): Promise<WriteSession> {
  const doing = `writing ${formatObjectName(request.table)}`;
  const session = killedBy(request.signal, link);
  const inWords = (error: unknown) => mysqlError(error, "destination", doing);
  try {
    const database = request.table.schema ?? link.database;
    if (database === null)
      throw new MagicError(
        "invalid_request",
        `Name the table as database.${request.table.name}, or a database in the URL.`,
      );
    // Temporary tables and the alias in DELETE t FROM ... t belong to some database, whatever the tables are called.
    if (link.database === null) await link.run(`USE ${ident(database)}`);
    request.waiting("another run of this sync to end");
    await lock(link, request.syncId);
    const committed = await readState(link, database, request);
    const existing = await describeTable(link, { schema: database, name: request.table.name });
    await checkEngine(link, existing);
    const warnings = await durability(link);
    return sessionOf({
      link,
      request,
      database,
      committed,
      existing,
      warnings,
      guard: translating(inWords),
      close: session.close,
    });
  } catch (error) {
    session.kill();
    throw inWords(error);
  }
}

// Rows that no ROLLBACK takes back would stay of a run that dies, and come twice.
async function checkEngine(link: MysqlLink, existing: MysqlTable | null): Promise<void> {
  if (!existing?.engine) return;
  const [row] = await link.rows("SELECT transactions AS t FROM information_schema.engines WHERE engine = ?", [
    existing.engine,
  ]);
  if (row?.["t"] === "YES") return;
  const name = formatObjectName({ schema: existing.database, name: existing.name });
  throw new MagicError(
    "destination_refused",
    `${name} is a table of the engine ${existing.engine}, which has no transactions: ALTER TABLE ... ENGINE = InnoDB, or choose another table.`,
  );
}

// With 0 a server that is killed forgets commits that it has acknowledged; with 2 only a machine that is.
async function durability(link: MysqlLink): Promise<readonly SyncFailure[]> {
  const [row] = await link.rows("SHOW VARIABLES LIKE 'innodb_flush_log_at_trx_commit'");
  if (row?.["Value"] !== "0") return [];
  return [
    {
      code: "commits_not_durable",
      message:
        "The destination's server acknowledges commits before they are in its log (innodb_flush_log_at_trx_commit = 0): if it crashes, rows and state of its last second are gone together, and the next run brings them again. Set it to 1.",
    },
  ];
}

interface Parts {
  readonly link: MysqlLink;
  readonly request: OpenRequest;
  readonly database: string;
  readonly committed: CommittedState;
  readonly existing: MysqlTable | null;
  readonly warnings: readonly SyncFailure[];
  readonly guard: Translating;
  close(): Promise<void>;
}

// Without an index each merge reads the whole table: rows wait until they are many.
const HELD_ROWS = 20_000;
const HELD_SIZE = 8 << 20;

function sessionOf(parts: Parts): WriteSession {
  const { link, request, database, existing, guard } = parts;
  const table = `${ident(database)}.${ident(request.table.name)}`;
  let plan: WritePlan | undefined;
  let upsert: InsertTarget["upsert"] = null;
  let stage: Stage | null = null;
  let held: { rows: Row[]; places: number[]; size: number } = { rows: [], places: [], size: 0 };
  // A full refresh by a key that neither the source nor the table vouches for.
  let unsure = false;
  let nullableKey = false;
  let wider: readonly Column[] = [];
  let referring: readonly Referring[] = [];
  let orphans: Orphans | null = null;
  // Of the rows that have waited for others, when it was looked whether all could be committed.
  const refused: Reject[] = [];
  const forms = new Map<string, Form>();
  for (const { name, declared, form = formOf(declared) } of existing?.columns ?? []) if (form) forms.set(name, form);
  const hasMark = existing?.columns.some(({ name }) => name === DELETED_AT) === true;
  let place = 0;
  let made = false;
  let moved = 0;
  const living = () => (mayBeMarked(plan, existing) ? ` WHERE ${ident(DELETED_AT)} IS NULL` : "");
  const begun = () => {
    if (!plan) throw new Error("the session has not begun");
    return plan;
  };
  const insertTarget = (): InsertTarget => {
    const plan = begun();
    const left = leftNull(plan, existing?.columns);
    return { link, table, plan, upsert, nullableKey, forms, left, marked: hasMark || plan.deletes === "soft" };
  };
  const putRows = async (rows: readonly Row[], placeOf: (at: number) => number) => {
    const result = await insertRows(insertTarget(), rows, placeOf);
    moved += result.bytes;
    return result;
  };
  const putPlaced = (placed: readonly PlacedRow[]) =>
    putRows(
      placed.map(({ row }) => row),
      (at) => placed[at]?.place as number,
    );
  const putReleased = async (waiting: Orphans) => {
    const { rejects } = await putPlaced(await waiting.release());
    return [...refused.splice(0), ...rejects, ...waiting.doubled()];
  };
  const putAdmitted = async (waiting: Orphans, rows: readonly Row[], placeOf: (at: number) => number) => {
    const admitted = await waiting.admit(rows.map((row, at) => ({ row, place: placeOf(at) })));
    const { rejects } = await putPlaced(admitted);
    return waiting.full ? [...rejects, ...(await putReleased(waiting))] : rejects;
  };
  // Everything that waits for others.
  const putHeld = async (): Promise<readonly Reject[]> => {
    const { rows, places } = held;
    if (stage === null) return orphans ? putReleased(orphans) : [];
    if (rows.length === 0) return [];
    held = { rows: [], places: [], size: 0 };
    request.waiting(`the merge into ${formatObjectName(request.table)}`);
    const result = await upsertStaged(insertTarget(), stage, rows, (at) => places[at] as number);
    moved += result.bytes;
    return result.rejects;
  };
  return {
    committed: parts.committed,
    get existing() {
      return existing ? widened(existing.columns, wider).filter(({ name }) => name !== DELETED_AT) : null;
    },
    warnings: parts.warnings,
    bytes: () => moved,
    rawFormats: [],
    rawTypes: [],
    hasRows: () =>
      guard(async () => {
        request.waiting(`the lock of ${formatObjectName(request.table)}`);
        return (await link.rows(`SELECT 1 AS there FROM ${table}${living()} LIMIT 1`)).length > 0;
      }),
    begin: (wanted) =>
      guard(async () => {
        plan = wanted;
        // Two that replace one table would each count the other's rows.
        request.waiting(`another full refresh of ${formatObjectName(request.table)} to end`);
        if (wanted.kind === "replace") await lock(link, createHash("sha256").update(table).digest("hex").slice(0, 32));
        request.waiting(`the lock of ${formatObjectName(request.table)}`);
        wider = await prepareTable(link, database, table, wanted, existing);
        for (const { name } of wider) forms.delete(name);
        made = existing === null;
        const soft = wanted.deletes === "soft";
        const keyed = wanted.primaryKey.length > 0 && (wanted.kind === "upsert" || soft);
        const asked = wanted.primaryKey.length > 0 && wanted.kind === "replace" && !wanted.keyCertain;
        const unique = (keyed || asked) && (await hasUniqueKey(link, database, request.table.name, wanted.primaryKey));
        upsert = keyed ? (unique ? "keys" : "delete") : null;
        if (upsert === "delete" && wanted.kind === "upsert" && existing && hasOwnColumns(existing, wanted))
          stage = await makeStage(link, existing, table, wanted);
        unsure = asked && !unique;
        nullableKey = existing?.columns.find(({ name }) => name === wanted.primaryKey[0])?.nullable === true;
        const inward = existing ? await referringToItself(link, existing) : [];
        if (inward.length > 0) orphans = createOrphans(insertTarget(), inward);
        await link.run("START TRANSACTION");
        if (wanted.kind !== "replace" || !existing) return;
        if (soft)
          await link.run(`UPDATE ${table} SET ${ident(DELETED_AT)} = COALESCE(${ident(DELETED_AT)}, UTC_TIMESTAMP(6))`);
        else {
          referring = await referringTo(link, existing);
          const removal = `DELETE FROM ${table}`;
          await (referring.length > 0 ? deleteUnasked(link, removal) : link.run(removal));
        }
      }),
    write: (rows, places) =>
      guard(async () => {
        request.waiting(`rows of ${request.stream} on their way into ${formatObjectName(request.table)}`);
        const first = place;
        place += rows.length;
        const placeOf = (at: number) => places?.[at] ?? first + at;
        if (stage === null && orphans) {
          const rejects = await putAdmitted(orphans, rows, placeOf);
          return { written: rows.length - rejects.length, rejects };
        }
        if (stage === null) return putRows(rows, placeOf);
        for (const [at, row] of rows.entries()) {
          held.rows.push(row);
          held.places.push(placeOf(at));
          for (const value of row) held.size += value?.length ?? 0;
        }
        const full = held.rows.length >= HELD_ROWS || held.size >= HELD_SIZE;
        const rejects = full ? await putHeld() : [];
        return { written: rows.length - rejects.length, rejects };
      }),
    mayCheckpoint: () =>
      guard(async () => {
        if (!orphans) return true;
        refused.push(...(await putPlaced(await orphans.settled())).rejects);
        return !orphans.waiting;
      }),
    checkpoint: (stateAfter) =>
      guard(async () => {
        await writeState(link, database, request, stateAfter(await putHeld()), begun().sourceSchema);
        await link.run("COMMIT");
        made = false;
        await link.run("START TRANSACTION");
      }),
    deleteMissing: (keys) =>
      guard(() =>
        deleteMissing({ ...insertTarget(), upsert: "keys", nullableKey: false }, keys, orphans ? existing : null),
      ),
    merge: () =>
      guard(async (): Promise<readonly Reject[]> => {
        const rejects = await putHeld();
        if (unsure) await checkKeys(link, table, formatObjectName(request.table), begun());
        await settle(link, table, referring);
        return rejects;
      }),
    count: () =>
      guard(async () => {
        const [row] = await link.rows(`SELECT count(*) AS n FROM ${table}${living()}`);
        return Number(row?.["n"] ?? 0);
      }),
    commit: (state) =>
      guard(async () => {
        request.waiting("the destination's commit");
        await writeState(link, database, request, state, begun().sourceSchema);
        await link.run("COMMIT");
        await parts.close();
      }),
    abort: async () => {
      // A table that this run made goes too, where the connection still lives and nobody else has written into it meanwhile.
      if (made && !request.signal.aborted) await dropEmpty(link, table).catch(() => {});
      link.kill();
      await parts.close();
    },
  };
}

async function dropEmpty(link: MysqlLink, table: string): Promise<void> {
  await link.run("ROLLBACK");
  await link.run("SET SESSION lock_wait_timeout = 1");
  await link.run(`LOCK TABLES ${table} WRITE`);
  const rows = await link.rows(`SELECT 1 AS there FROM ${table} LIMIT 1`);
  if (rows.length === 0) await link.run(`DROP TABLE ${table}`);
}
