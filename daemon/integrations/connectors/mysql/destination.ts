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
import { widened } from "../../engine/evolution.ts";
import { formatObjectName } from "../../engine/name.ts";
import type { Column } from "../../engine/types.ts";
import { killedBy } from "../killed-by.ts";
import { type Translating, translating } from "../translating.ts";
import { describeTable, fitOfNew, type MysqlTable } from "./catalog.ts";
import { connectMysql, ident, type MysqlLink } from "./connect.ts";
import { deleteMissing } from "./delete-missing.ts";
import { keptByTrigger, mysqlError } from "./errors.ts";
import { checkKeys } from "./keys.ts";
import { planWriting, type Writing } from "./plan-writing.ts";
import { prepareTable } from "./prepare.ts";
import { deleteUnasked, type Referring, referringTo, settle } from "./referring.ts";
import { lock, readState, writeState } from "./state-table.ts";

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

function sessionOf(parts: Parts): WriteSession {
  const { link, request, database, existing, guard } = parts;
  const table = `${ident(database)}.${ident(request.table.name)}`;
  const shown = formatObjectName(request.table);
  let writing: Writing | undefined;
  let wider: readonly Column[] = [];
  let referring: readonly Referring[] = [];
  let place = 0;
  let made = false;
  let moved = 0;
  const living = () => (mayBeMarked(writing?.plan, existing) ? ` WHERE ${ident(DELETED_AT)} IS NULL` : "");
  const begun = () => {
    if (!writing) throw new Error("the session has not begun");
    return writing;
  };
  const count = (bytes: number) => {
    moved += bytes;
  };
  return {
    committed: parts.committed,
    get existing() {
      return existing ? widened(existing.columns, wider).filter(({ name }) => name !== DELETED_AT) : null;
    },
    fitNew: fitOfNew,
    warnings: parts.warnings,
    bytes: () => moved,
    rawFormats: [],
    rawTypes: [],
    hasRows: () =>
      guard(async () => {
        request.waiting(`the lock of ${shown}`);
        return (await link.rows(`SELECT 1 AS there FROM ${table}${living()} LIMIT 1`)).length > 0;
      }),
    begin: (plan) =>
      guard(async () => {
        // Two that replace one table would each count the other's rows.
        request.waiting(`another full refresh of ${shown} to end`);
        if (plan.kind === "replace") await lock(link, createHash("sha256").update(table).digest("hex").slice(0, 32));
        request.waiting(`the lock of ${shown}`);
        wider = await prepareTable(link, database, table, plan, existing);
        made = existing === null;
        writing = await planWriting({ ...parts, table, plan, wider, count });
        await link.run("START TRANSACTION");
        if (plan.kind === "replace" && existing)
          referring = await clear(link, table, plan, existing).catch(keptByTrigger);
      }),
    write: (rows, places) =>
      guard(async () => {
        request.waiting(`rows of ${request.stream} on their way into ${shown}`);
        const first = place;
        place += rows.length;
        const rejects = await begun().intake.take(rows, (at) => places?.[at] ?? first + at);
        return { written: rows.length - rejects.length, rejects };
      }),
    mayCheckpoint: () => guard(() => begun().intake.mayCommit()),
    checkpoint: (stateAfter) =>
      guard(async () => {
        const { intake, plan } = begun();
        await writeState(link, database, request, stateAfter(await intake.finish()), plan.sourceSchema);
        await link.run("COMMIT");
        made = false;
        await link.run("START TRANSACTION");
      }),
    deleteMissing: (keys) =>
      guard(() => {
        const { target, inward } = begun();
        return deleteMissing({ ...target, upsert: "keys", nullableKey: false }, keys, inward).catch(keptByTrigger);
      }),
    merge: () =>
      guard(async (): Promise<readonly Reject[]> => {
        const { intake, unsure, plan } = begun();
        const rejects = await intake.finish();
        if (unsure) await checkKeys(link, table, shown, plan);
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
        await writeState(link, database, request, state, begun().plan.sourceSchema);
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

/** Takes out, or marks, the rows of a full refresh's table. Answers whose rows refer to those that are out. */
async function clear(
  link: MysqlLink,
  table: string,
  plan: WritePlan,
  existing: MysqlTable,
): Promise<readonly Referring[]> {
  if (plan.deletes === "soft") {
    await link.run(`UPDATE ${table} SET ${ident(DELETED_AT)} = COALESCE(${ident(DELETED_AT)}, UTC_TIMESTAMP(6))`);
    return [];
  }
  const referring = await referringTo(link, existing);
  const removal = `DELETE FROM ${table}`;
  await (referring.length > 0 ? deleteUnasked(link, removal) : link.run(removal));
  return referring;
}

async function dropEmpty(link: MysqlLink, table: string): Promise<void> {
  await link.run("ROLLBACK");
  await link.run("SET SESSION lock_wait_timeout = 1");
  await link.run(`LOCK TABLES ${table} WRITE`);
  const rows = await link.rows(`SELECT 1 AS there FROM ${table} LIMIT 1`);
  if (rows.length === 0) await link.run(`DROP TABLE ${table}`);
}
