// MySQL and MariaDB as a destination: rows and state in one InnoDB transaction. A full refresh deletes and inserts in it, so readers
// see the old rows until it commits, and a run that dies leaves them.
import { createHash } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import type { Reject, SyncFailure } from "#contract/sync.ts";
import {
  type CommittedState,
  DELETED_AT,
  type Destination,
  type OpenRequest,
  type WritePlan,
  type WriteSession,
} from "../../engine/destination.ts";
import { leftNull, widened } from "../../engine/evolution.ts";
import { formatObjectName } from "../../engine/name.ts";
import type { StreamState } from "../../engine/source.ts";
import type { Column, Row, TableSchema, Value } from "../../engine/types.ts";
import { killedBy } from "../killed-by.ts";
import { describeTable, type MysqlTable } from "./catalog.ts";
import { connectMysql, ident, literal, type MysqlLink } from "./connect.ts";
import { mysqlError } from "./errors.ts";
import { hasOwnColumns, makeStage, type Stage, upsertStaged } from "./merge-stage.ts";
import { createOrphans, type Orphans, type PlacedRow } from "./orphans.ts";
import { prepareTable } from "./prepare.ts";
import { deleteUnasked, type Referring, referringTo, referringToItself, settle } from "./referring.ts";
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
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw mysqlError(error, "destination", doing);
    }
  };
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
    return sessionOf({ link, request, database, committed, existing, warnings, guard, close: session.close });
  } catch (error) {
    session.kill();
    throw mysqlError(error, "destination", doing);
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

// Held until the connection ends, however it ends.
async function lock(link: MysqlLink, name: string): Promise<void> {
  for (;;) {
    const [row] = await link.rows(`SELECT GET_LOCK(${literal(`magic:${name}`.slice(0, 64))}, 1) AS got`);
    if (row?.["got"] === "1") return;
  }
}

async function readState(link: MysqlLink, database: string, request: OpenRequest): Promise<CommittedState> {
  const [there] = await link.rows(
    "SELECT 1 AS there FROM information_schema.tables WHERE table_schema = ? AND table_name = '_magic_state'",
    [database],
  );
  if (!there) return { state: null, schema: null };
  const [row] = await link.rows(
    `SELECT state, \`schema\` AS s FROM ${ident(database)}._magic_state WHERE sync_id = ${literal(request.syncId)} AND stream = ${literal(request.stream)}`,
  );
  return {
    state: row?.["state"] ? (JSON.parse(row["state"]) as StreamState) : null,
    schema: row?.["s"] ? (JSON.parse(row["s"]) as TableSchema) : null,
  };
}

interface Parts {
  readonly link: MysqlLink;
  readonly request: OpenRequest;
  readonly database: string;
  readonly committed: CommittedState;
  readonly existing: MysqlTable | null;
  readonly warnings: readonly SyncFailure[];
  guard<T>(work: () => Promise<T>): Promise<T>;
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
  const forms = new Map<string, Form>();
  for (const { name, declared, form = formOf(declared) } of existing?.columns ?? []) if (form) forms.set(name, form);
  const hasMark = existing?.columns.some(({ name }) => name === DELETED_AT) === true;
  let place = 0;
  let made = false;
  let moved = 0;
  // A run that finds nothing to do counts without having begun.
  const marked = () => (plan ? plan.deletes === "soft" : hasMark);
  const living = () => (marked() ? ` WHERE ${ident(DELETED_AT)} IS NULL` : "");
  const begun = () => {
    if (!plan) throw new Error("the session has not begun");
    return plan;
  };
  const writeState = async (state: StreamState | null) => {
    const json = (value: unknown) => (value === null ? "NULL" : literal(JSON.stringify(value)));
    await link.run(
      `INSERT INTO ${ident(database)}._magic_state (sync_id, stream, state, \`schema\`, updated_at) VALUES (${literal(request.syncId)}, ${literal(request.stream)}, ${json(state)}, ${json(begun().sourceSchema)}, UTC_TIMESTAMP(6)) ` +
        "ON DUPLICATE KEY UPDATE state = VALUES(state), `schema` = VALUES(`schema`), updated_at = VALUES(updated_at)",
    );
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
    return [...rejects, ...waiting.doubled()];
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
      guard(async () => (await link.rows(`SELECT 1 AS there FROM ${table}${living()} LIMIT 1`)).length > 0),
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
    checkpoint: (stateAfter) =>
      guard(async () => {
        await writeState(stateAfter(await putHeld()));
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
        await writeState(state);
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

async function hasUniqueKey(link: MysqlLink, database: string, name: string, key: readonly string[]): Promise<boolean> {
  const rows = await link.rows(
    "SELECT index_name AS i, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR '\\0') AS c FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND non_unique = 0 GROUP BY index_name HAVING MAX(sub_part) IS NULL",
    [database, name],
  );
  const wanted = [...key].sort().join("\0");
  return rows.some(
    (row) =>
      (row["c"] ?? "")
        .split(/\0|\\0/)
        .sort()
        .join("\0") === wanted,
  );
}

// An asked-for key that the table itself does not keep unique: of two rows nobody can tell which came last.
async function checkKeys(link: MysqlLink, table: string, name: string, plan: WritePlan): Promise<void> {
  const key = plan.columns.filter((column) => plan.primaryKey.includes(column.name));
  const exactly = key.map((column) =>
    column.type.kind === "string"
      ? `CONVERT(${ident(column.name)} USING utf8mb4) COLLATE ${link.keyCollation}`
      : ident(column.name),
  );
  const [row] = await link.rows(
    `SELECT 1 AS doubled FROM ${table} GROUP BY ${exactly.join(", ")} HAVING count(*) > 1 LIMIT 1`,
  );
  if (row)
    throw new MagicError(
      "destination_refused",
      `Records of the same primary key were read, and ${name} has no unique key over ${plan.primaryKey.join(", ")} that would tell them: add one.`,
    );
}

/** `inward`: the table, where its rows refer to each other: one may go before those that refer to it. */
async function deleteMissing(
  target: InsertTarget,
  keys: AsyncIterable<readonly Value[][]>,
  inward: MysqlTable | null,
): Promise<number> {
  const { link, table, plan } = target;
  const names = plan.primaryKey.map(ident);
  // The key is part of the definition: an ALTER TABLE would commit the rows before the state.
  const make = (key: string) =>
    link.run(`CREATE TEMPORARY TABLE _magic_keys ${key} AS SELECT ${names.join(", ")} FROM ${table} LIMIT 0`);
  await make(`(PRIMARY KEY (${names.join(", ")}))`).catch(() => make(""));
  // A key that its column cannot hold is in no row here, and must not be cut to one that is. One that comes again is no error.
  const columns = plan.primaryKey.flatMap((name) => plan.columns.find((column) => column.name === name) ?? []);
  const into = { ...target, table: "_magic_keys", plan: { ...plan, columns }, left: [], marked: false };
  for await (const rows of keys) await insertRows(into, rows, (at) => at);
  const join = `${table} t LEFT JOIN _magic_keys k ON ${names.map((name) => `k.${name} = t.${name}`).join(" AND ")}`;
  const gone = `k.${names[0]} IS NULL`;
  const removal = `DELETE t FROM ${join} WHERE ${gone}`;
  let affected: number;
  if (plan.deletes === "soft")
    ({ affected } = await link.run(
      `UPDATE ${join} SET t.${ident(DELETED_AT)} = UTC_TIMESTAMP(6) WHERE ${gone} AND t.${ident(DELETED_AT)} IS NULL`,
    ));
  else if (inward) {
    affected = await deleteUnasked(link, removal);
    await settle(link, table, await referringTo(link, inward));
  } else ({ affected } = await link.run(removal));
  await link.run("DROP TEMPORARY TABLE _magic_keys");
  return affected;
}
