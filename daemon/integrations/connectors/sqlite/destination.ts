// A SQLite file as a destination: one write transaction holds the rows and the state; readers see the old rows until it commits.
import { rmSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import type { Reject } from "#contract/sync.ts";
import { refuseAlike } from "../../engine/alike.ts";
import { committedIn } from "../../engine/committed.ts";
import {
  type CommittedState,
  DELETED_AT,
  type Destination,
  mayBeMarked,
  type OpenRequest,
  type WritePlan,
  type WriteSession,
} from "../../engine/destination.ts";
import { planChanges, refuseComputed } from "../../engine/evolution.ts";
import { DOUBLED, keyedRows, outlived } from "../../engine/keys.ts";
import { keyOf } from "../../engine/rejects.ts";
import type { StreamState } from "../../engine/source.ts";
import { createTakenRows, type TakenRows } from "../../engine/taken.ts";
import type { Column, Row, Value } from "../../engine/types.ts";
import { translating } from "../translating.ts";
import { describeTable, quote, type SqliteTable } from "./catalog.ts";
import { isRowError, isTaken, sqliteError } from "./errors.ts";
import { type Waits, whenFree } from "./free.ts";
import { affinityOf, declare, writeValue } from "./types.ts";
import { widenTypes } from "./widen.ts";
import { endRows, type RowWriter, rowWriter, writing } from "./write-row.ts";

const pragmas =
  "PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -65536; PRAGMA legacy_alter_table = ON";

export function sqliteDestination(path: string): Destination {
  let db: DatabaseSync | undefined;
  const open = async (waits: Waits) => {
    const { DatabaseSync } = await import("node:sqlite");
    try {
      const opened = new DatabaseSync(path, { timeout: 0 });
      db = opened;
      // They read the file, which a writer with much to write keeps for itself.
      await whenFree(() => opened.exec(pragmas), waits, "another writer of the file to end");
      return opened;
    } catch (error) {
      throw sqliteError(error, "destination", path);
    }
  };
  return {
    open: async (request) => {
      for (;;) {
        const opened = await open(request);
        try {
          const { ino } = statSync(path);
          await begin(opened, request);
          // The run that made the file may have taken it away while this one waited for its lock.
          if (isAt(path, ino)) {
            const { n } = opened.prepare("SELECT count(*) AS n FROM sqlite_schema").get() as { n: number };
            return openSession(opened, request, { path, ino, existed: n > 0 });
          }
          opened.close();
        } catch (error) {
          if (opened.isOpen) opened.close();
          throw sqliteError(error, "destination", path);
        }
      }
    },
    close: async () => {
      if (db?.isOpen) db.close();
    },
  };
}

interface DatabaseFile {
  readonly path: string;
  readonly ino: number;
  /** False of one that held nothing. */
  readonly existed: boolean;
}

const isAt = (path: string, ino: number) => statSync(path, { throwIfNoEntry: false })?.ino === ino;

const begin = (db: DatabaseSync, request: OpenRequest) =>
  whenFree(() => db.exec("BEGIN IMMEDIATE"), request, "another writer of the file to end");

// Without a write-ahead log a commit needs the file for itself; what stands in its way leaves it possible.
const commit = (db: DatabaseSync, request: OpenRequest) =>
  whenFree(() => db.exec("COMMIT"), request, "readers of the file to end");

function readState(db: DatabaseSync, request: OpenRequest): CommittedState {
  if (!describeTable(db, "_magic_state")) return { state: null, schema: null };
  const row = db
    .prepare("SELECT state, schema FROM _magic_state WHERE sync_id = ? AND stream = ?")
    .get(request.syncId, request.stream) as { state: string | null; schema: string | null } | undefined;
  return committedIn(row, "_magic_state");
}

function openSession(db: DatabaseSync, request: OpenRequest, { path, ino, existed }: DatabaseFile): WriteSession {
  const committed = readState(db, request);
  let existing = describeTable(db, request.table.name);
  const table = quote(request.table.name);
  let plan: WritePlan | undefined;
  let insert: RowWriter | undefined;
  let taken: TakenRows | undefined;
  let place = 0;
  let kept = false;
  const living = () => (mayBeMarked(plan, existing) ? ` WHERE ${quote(DELETED_AT)} IS NULL` : "");
  const begun = () => {
    if (!plan) throw new Error("the session has not begun");
    return plan;
  };
  const guard = translating((error) => sqliteError(error, "destination", path));
  const put = (row: Row, place: number): { reject: Reject; taken: boolean } | null => {
    const refused = (column: string | null, reason: string, taken = false) => ({
      reject: { key: keyOf(begun())(row, place), column, reason },
      taken,
    });
    try {
      return insert?.(row) === "doubled" ? refused(begun().primaryKey[0] ?? null, DOUBLED) : null;
    } catch (error) {
      // A trigger may have undone the run's transaction.
      if (!isRowError(error) || !db.isTransaction) throw error;
      return refused(columnIn(error.message), error.message, isTaken(error));
    }
  };
  const settled = async () => (await taken?.settle((row, place) => put(row, place)?.reject ?? null)) ?? [];
  const session: WriteSession = {
    committed,
    get existing() {
      return existing ? existing.columns.filter(({ name }) => name !== DELETED_AT) : null;
    },
    warnings: [],
    rawFormats: [],
    rawTypes: [],
    hasRows: () => guard(() => db.prepare(`SELECT 1 FROM ${table}${living()} LIMIT 1`).get() !== undefined),
    begin: (wanted) =>
      guard(() => {
        plan = wanted;
        prepare(db, table, wanted, existing, request.table.name);
        const described = describeTable(db, request.table.name);
        if (existing) existing = described;
        insert = wanted.columns.length > 0 ? rowWriter(db, table, wanted, described) : undefined;
        taken = createTakenRows(wanted);
      }),
    write: (rows, places) =>
      guard(() => {
        const first = place;
        place += rows.length;
        const keyed = keyedRows(rows, begun(), (at) => places?.[at] ?? first + at);
        const rejects: Reject[] = [...keyed.rejects];
        for (const [at, row] of keyed.rows.entries()) {
          const place = keyed.place(at);
          taken?.replacedBy(row);
          const refused = put(row, place);
          if (refused && !(refused.taken && taken?.hold({ row, place, ...refused }))) rejects.push(refused.reject);
        }
        return { written: rows.length - rejects.length, rejects };
      }),
    checkpoint: (stateAfter) =>
      guard(async () => {
        const late = await settled();
        endRows(db);
        writeState(db, request, begun(), stateAfter(late));
        await commit(db, request);
        kept = true;
        await begin(db, request);
        insert &&= rowWriter(db, table, begun(), describeTable(db, request.table.name));
      }),
    deleteMissing: (keys) => guard(() => deleteMissing(db, request.table.name, begun(), keys)),
    // Rows went into the table itself, in this transaction.
    merge: () =>
      guard(async () => {
        const late = await settled();
        endRows(db);
        return late;
      }),
    count: () =>
      guard(() => {
        return Number((db.prepare(`SELECT count(*) AS n FROM ${table}${living()}`).get() as { n: number }).n);
      }),
    commit: (state) =>
      guard(async () => {
        writeState(db, request, begun(), state);
        await commit(db, request);
        db.close();
        // What is written into a file that has no name any more nobody will find.
        if (!isAt(path, ino))
          throw new MagicError(
            "destination_refused",
            `${path} was removed or replaced while it was written: run the sync again.`,
          );
      }),
    abort: async () => {
      if (!db.isOpen) return;
      // A file that holds nothing yet goes while its lock is still held: nobody else can have begun to write into it. Its journal
      // goes first: on a full disk SQLite leaves that behind, and would empty whatever file is put beside it later.
      if (!existed && !kept) for (const file of [`${path}-journal`, path]) rmSync(file, { force: true });
      else if (db.isTransaction) db.exec("ROLLBACK");
      db.close();
    },
  };
  return session;
}

function columnIn(message: string): string | null {
  return /constraint failed: (?:[^.]+\.)?([^,\s]+)/.exec(message)?.[1] ?? null;
}

function prepare(db: DatabaseSync, table: string, plan: WritePlan, existing: SqliteTable | null, name: string): void {
  db.exec(
    "CREATE TABLE IF NOT EXISTS _magic_state (sync_id TEXT NOT NULL, stream TEXT NOT NULL, state TEXT, schema TEXT, updated_at TEXT NOT NULL, PRIMARY KEY (sync_id, stream))",
  );
  refuseAlike(plan.columns, existing?.columns ?? [], name, "SQLite");
  const soft = plan.deletes === "soft";
  // SQLite cannot give a table another key: one that is only what the sync made is made anew.
  const remade = existing !== null && !soft && outlived(existing.primaryKey, plan) && isBare(db, existing, plan);
  if (remade) db.exec(`DROP TABLE ${table}`);
  if (!existing || remade) {
    db.exec(creation(name, plan.columns, plan.primaryKey, soft ? DELETED_AT : undefined));
    return;
  }
  refuseComputed(
    plan.columns,
    existing.columns.filter(({ generated }) => generated).map((column) => column.name),
    name,
  );
  const { add, widen } = planChanges(plan.columns, existing.columns, name);
  widenTypes(db, existing, widen);
  for (const column of add) db.exec(`ALTER TABLE ${table} ADD COLUMN ${quote(column.name)} ${declare(column)}`);
  if (soft && !existing.columns.some((column) => column.name === DELETED_AT))
    db.exec(`ALTER TABLE ${table} ADD COLUMN ${quote(DELETED_AT)} TEXT`);
  if (plan.kind !== "replace") return;
  if (soft)
    db.exec(
      `UPDATE ${table} SET ${quote(DELETED_AT)} = coalesce(${quote(DELETED_AT)}, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))`,
    );
  else db.exec(`DELETE FROM ${table}`);
}

// Nothing that somebody else has said of the table would go with it: constraints and types stand in its own text.
function isBare(db: DatabaseSync, { name, columns, primaryKey }: SqliteTable, plan: WritePlan): boolean {
  if (!columns.every((column) => plan.columns.some((one) => one.name === column.name))) return false;
  const texts = db.prepare("SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL").all(name);
  return texts.length === 1 && texts[0]?.["sql"] === creation(name, columns, primaryKey);
}

function creation(name: string, of: readonly Column[], key: readonly string[], mark?: string): string {
  const columns = of.map(
    (column) => `${quote(column.name)} ${declare(column)}${key.includes(column.name) ? " NOT NULL" : ""}`,
  );
  if (mark !== undefined) columns.push(`${quote(mark)} TEXT`);
  if (key.length > 0) columns.push(`PRIMARY KEY (${key.map(quote).join(", ")})`);
  return `CREATE TABLE ${quote(name)} (${columns.join(", ")})`;
}

async function deleteMissing(
  db: DatabaseSync,
  name: string,
  plan: WritePlan,
  keys: AsyncIterable<readonly Value[][]>,
): Promise<number> {
  const table = quote(name);
  const key = plan.primaryKey;
  const columns = key.flatMap((name) => plan.columns.find((column) => column.name === name) ?? []);
  const there = describeTable(db, name)?.columns ?? [];
  const declared = key.map((name) => there.find((column) => column.name === name)?.declared ?? "");
  // Of the table's own types: SQLite looks in no index whose column is of another affinity, and would compare each key with each.
  const made = key.map((name, at) => `${quote(name)} ${declared[at] ? quote(declared[at]) : ""}`);
  db.exec(`CREATE TEMP TABLE _magic_keys (${made.join(", ")}, UNIQUE (${key.map(quote).join(", ")}))`);
  const insert = writing(db, `INSERT OR IGNORE INTO _magic_keys VALUES (${key.map(() => "?").join(", ")})`);
  const keep = (row: readonly Value[]) => {
    try {
      insert.run(
        ...columns.map((column, at) =>
          writeValue(row[at] ?? null, column, affinityOf(declared[at] ?? ""), declared[at]),
        ),
      );
    } catch (error) {
      // A key that its column cannot hold is in no row here.
      if (!isRowError(error)) throw error;
    }
  };
  for await (const rows of keys) rows.forEach(keep);
  const gone = `NOT EXISTS (SELECT 1 FROM _magic_keys k WHERE ${key.map((name) => `k.${quote(name)} = t.${quote(name)}`).join(" AND ")})`;
  const sql =
    plan.deletes === "soft"
      ? `UPDATE ${table} AS t SET ${quote(DELETED_AT)} = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE ${quote(DELETED_AT)} IS NULL AND ${gone}`
      : `DELETE FROM ${table} AS t WHERE ${gone}`;
  const { changes } = writing(db, sql).run();
  db.exec("DROP TABLE _magic_keys");
  return Number(changes);
}

function writeState(db: DatabaseSync, request: OpenRequest, plan: WritePlan, state: StreamState | null): void {
  writing(
    db,
    "INSERT INTO _magic_state (sync_id, stream, state, schema, updated_at) VALUES (?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT (sync_id, stream) DO UPDATE SET state = excluded.state, schema = excluded.schema, updated_at = excluded.updated_at",
  ).run(
    request.syncId,
    request.stream,
    state === null ? null : JSON.stringify(state),
    JSON.stringify(plan.sourceSchema),
  );
}
