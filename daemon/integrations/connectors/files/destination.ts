// A CSV, JSON Lines or Parquet file as a destination: a new file is written beside the old one and takes its place when it is whole.
// An incremental run writes the old records and the new ones; of one key the new one wins.
import { chmodSync, chownSync, existsSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { REJECTS_SHOWN, type Reject } from "#contract/sync.ts";
import type { CommittedState, Destination, OpenRequest, WritePlan, WriteSession } from "../../engine/destination.ts";
import { planChanges } from "../../engine/evolution.ts";
import { DOUBLED, keyedRows, keyPlaces } from "../../engine/keys.ts";
import { keyOf, rejectsOf } from "../../engine/rejects.ts";
import type { Column, Row } from "../../engine/types.ts";
import type { FileReader, FileWriter } from "./format.ts";
import { type FormatName, formatOf } from "./formats.ts";
import { keepRecords } from "./kept.ts";
import { keyForm } from "./key-form.ts";
import { lockFile } from "./lock.ts";
import { openSpool, type Spool } from "./spool.ts";
import { openStateFile, type StateFile } from "./state.ts";

export function fileDestination(path: string, format: FormatName): Destination {
  return {
    open: (request) => openSession(path, format, request),
    close: async () => {},
  };
}

async function openSession(path: string, format: FormatName, request: OpenRequest): Promise<WriteSession> {
  // A link stays, and what it leads to is replaced.
  const target = existsSync(path) ? realpathSync(path) : path;
  const unlock = await lockFile(target, request);
  let old: FileReader | null = null;
  const release = () => {
    old?.close().catch(() => {});
    unlock();
  };
  try {
    const statePath = request.stateFile ?? `${path}.magic-state`;
    const alone = async (work: () => Promise<void>) => {
      const done = await lockFile(statePath, request);
      await work().finally(done);
    };
    const stateFile = await openStateFile(statePath, request.syncId, resolve(path), alone);
    const there = await told(path, async () => statSync(path, { throwIfNoEntry: false }));
    if (there && !there.isFile()) throw new MagicError("destination_refused", `${path} is no plain file.`);
    // A file without a byte holds no table yet.
    old = there && there.size > 0 ? await (await formatOf(format)).open(path) : null;
    const committed = stateFile.committed(request.stream);
    return guarded(path, sessionOf({ path, target, format, request, stateFile, old, committed }), release);
  } catch (error) {
    release();
    throw error;
  }
}

// A full disk, a lost mount, a limit on files: the destination's fault, in its words.
async function told<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (isMagicError(error) || typeof code !== "string" || !/^E([A-Z]+|RR_SQLITE_ERROR)$/.test(code)) throw error;
    throw new MagicError("destination_refused", `${path} cannot be written: ${message}.`, { cause: error });
  }
}

function guarded(path: string, session: WriteSession, release: () => void): WriteSession {
  return {
    ...session,
    get existing() {
      return session.existing;
    },
    bytes: () => session.bytes?.() ?? 0,
    begin: (plan) => told(path, () => session.begin(plan)),
    write: (rows, places) => told(path, () => session.write(rows, places)),
    merge: () => told(path, () => session.merge()),
    commit: (state) => told(path, () => session.commit(state)).then(release),
    abort: () => session.abort().finally(release),
  };
}

interface Parts {
  readonly path: string;
  /** Where the file lies. */
  readonly target: string;
  readonly format: FormatName;
  readonly request: OpenRequest;
  readonly stateFile: StateFile;
  readonly old: FileReader | null;
  readonly committed: CommittedState;
}

function sessionOf({ path, target, format, request, stateFile, old, committed }: Parts): WriteSession {
  // The same name every time: what a killed run left is replaced by the next. The id may be of a state file that somebody else wrote.
  const id = request.syncId.replace(/[^A-Za-z0-9]/g, "").slice(-12);
  const partial = join(dirname(target), `.${basename(target)}.${id}.partial`);
  let plan: WritePlan | undefined;
  let writer: FileWriter | undefined;
  let spool: Spool | undefined;
  /** The file whose records the new one keeps. */
  let stays: FileReader | null = null;
  let columns: readonly Column[] = [];
  let rows = 0;
  let place = 0;
  const begun = () => {
    if (!plan || !writer) throw new Error("the session has not begun");
    return { plan, writer };
  };
  const put = async (batch: readonly Row[], first: number): Promise<Reject[]> => {
    const { plan, writer } = begun();
    const name = keyOf(plan);
    const bad = await writer.write(batch);
    rows += batch.length - bad.length;
    return bad.map(({ row, column, reason }) => ({ key: name(batch[row] ?? [], first + row), column, reason }));
  };
  const session: WriteSession = {
    committed,
    stateApart: true,
    get existing() {
      return old ? (plan ? columns : old.columns).map((column) => ({ ...column, untyped: true })) : null;
    },
    warnings: [],
    rawFormats: [],
    rawTypes: [],
    bytes: () => writer?.bytes ?? 0,
    hasRows: async () => {
      if (old) for await (const { rows } of old.read()) if (rows.length > 0) return true;
      return false;
    },
    begin: async (wanted) => {
      plan = wanted;
      if (wanted.deletes === "soft")
        throw new MagicError(
          "not_supported",
          `${format} files cannot mark deleted records: use --deletes hard or ignore.`,
        );
      const keeps = wanted.kind !== "replace" && old !== null;
      // Records of before stay: their columns too.
      const extra = keeps
        ? (old?.columns ?? []).filter(({ name }) => !wanted.columns.some((column) => column.name === name))
        : [];
      columns = [...(keeps && old && format === "parquet" ? typed(wanted, old, path) : wanted.columns), ...extra];
      try {
        // A killed run's may have the permissions of a file that may not be written.
        rmSync(partial, { force: true });
        writer = await (await formatOf(format)).create(partial, columns, path);
        keepAccess(target, partial);
        if (keeps) stays = old;
        if (keeps || (!wanted.keyCertain && wanted.primaryKey.length > 0)) spool = await openSpool(`${partial}.new`);
      } catch (error) {
        const why = existsSync(dirname(path)) ? (error as Error).message : `there is no folder ${dirname(path)}`;
        throw new MagicError("destination_refused", `${path} cannot be written: ${why}.`, { cause: error });
      }
    },
    write: async (batch) => {
      const first = place;
      place += batch.length;
      if (spool) {
        const { rows, rejects } = keyedRows(batch, begun().plan, (at) => first + at);
        await spool.add(rows);
        return { written: rows.length, rejects };
      }
      const rejects = await put(batch, first);
      return { written: batch.length - rejects.length, rejects };
    },
    deleteMissing: async () => {
      throw new MagicError(
        "not_supported",
        `An incremental sync into a ${format} file cannot follow deletions: use full_refresh, or --deletes ignore.`,
      );
    },
    merge: async () => {
      if (!spool) return [];
      const { plan, writer } = begun();
      request.waiting(`the records of ${path}`);
      const places = keyPlaces(plan);
      const form = keyForm(places.map((at) => plan.columns[at] as Column));
      const fresh =
        places.length > 0 ? await spool.lastOfKeys((row) => form(places.map((at) => row[at] ?? null))) : null;
      if (stays) rows += await keepRecords({ old: stays, writer, plan, columns, fresh, path });
      const name = keyOf(plan);
      const rejects: Reject[] = [];
      const doubled: Reject[] = [];
      let passed = 0;
      const passedBy = (row: Row) => {
        if (passed++ < REJECTS_SHOWN)
          doubled.push({ key: name(row, 0), column: plan.primaryKey[0] ?? null, reason: DOUBLED });
      };
      let first = 0;
      for await (const batch of spool.read(passedBy)) {
        const bad = await put(
          batch.map((row) => columns.map((_, at) => row[at] ?? null)),
          first,
        );
        rejects.push(...bad);
        first += batch.length;
      }
      return plan.kind === "replace" ? rejectsOf(doubled, passed).concat(rejects) : rejects;
    },
    count: async () => (plan ? rows : (old?.records ?? null)),
    commit: async (state) => {
      const { plan, writer } = begun();
      request.waiting(`the disk under ${path}`);
      await writer.finish();
      await spool?.remove();
      const committed = { state, schema: plan.sourceSchema };
      const change = { stream: request.stream, committed, alone: stays === null };
      await stateFile.prepare(change, partial);
      renameSync(partial, target);
      await syncFolder(dirname(target));
      await stateFile.commit(change);
    },
    abort: async () => {
      await writer?.abort().catch(() => {});
      await spool?.remove();
      if (writer) rmSync(partial, { force: true });
    },
  };
  return session;
}

// Records that stay must fit as well: a column keeps its type unless the source's is wider.
function typed(plan: WritePlan, old: FileReader, path: string): readonly Column[] {
  const { widen } = planChanges(plan.columns, old.columns, path);
  return plan.columns.map((column) => {
    const there = widen.includes(column) ? undefined : old.columns.find(({ name }) => name === column.name);
    return there ? { ...there, nullable: true } : column;
  });
}

// Whoever may read the old one, and nobody else, may read the new one. Some file systems refuse to be asked for what is so already.
function keepAccess(old: string, fresh: string): void {
  const was = statSync(old, { throwIfNoEntry: false });
  if (!was) return;
  const { uid, gid, mode } = statSync(fresh);
  if (was.uid !== uid || was.gid !== gid)
    try {
      chownSync(fresh, was.uid, was.gid);
    } catch {
      // Root alone may give a file away.
    }
  if ((was.mode & 0o777) !== (mode & 0o777)) chmodSync(fresh, was.mode & 0o777);
}

async function syncFolder(path: string): Promise<void> {
  const folder = await openFile(path, "r").catch(() => null);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
