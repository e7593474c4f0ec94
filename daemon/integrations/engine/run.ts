// One run: check -> discover -> plan -> read -> write -> merge -> verify -> commit, in this order, and everything undone when it fails.
import { type ErrorCode, isMagicError, MagicError } from "#contract/errors.ts";
import type { Reject, SyncOutcome, SyncProgress, SyncProof, SyncSpec } from "#contract/sync.ts";
import { redactText } from "#shared/redact.ts";
import { countOf, joined, readAhead } from "./batches.ts";
import { converterOf } from "./convert.ts";
import type { CommittedState, Destination, WritePlan, WriteSession } from "./destination.ts";
import { checkDrift } from "./evolution.ts";
import { checksOf, misfitsOf } from "./fit.ts";
import { parseObjectName } from "./name.ts";
import { checkSpec, derivedSyncId, writePlan } from "./plan.ts";
import { createRejectList, keyOf, type RejectList } from "./rejects.ts";
import { readServerUrl } from "./server-url.ts";
import { isReadByRecord, type Partition, type Source, type SourceStream, type StreamState } from "./source.ts";
import type { Row } from "./types.ts";
import { createWatchdog, type Watchdog } from "./watchdog.ts";

export interface RunPorts {
  openSource(spec: SyncSpec): Promise<Source>;
  openDestination(spec: SyncSpec): Promise<Destination>;
  onProgress(progress: SyncProgress): void;
  /** Aborted to cancel the run. */
  readonly signal: AbortSignal;
}

// A source without a snapshot is committed on the way: a long read that dies loses at most this much.
const CHECKPOINT_ROWS = 100_000;
const CHECKPOINT_MS = 10_000;
const PROGRESS_MS = 250;
const UNDO_MS = 1000;
const MESSAGE_LENGTH = 2000;

interface Run {
  readonly spec: SyncSpec;
  readonly syncId: string;
  readonly dog: Watchdog;
  readonly rejects: RejectList;
  readonly warnings: { code: string; message: string }[];
  phase: SyncProgress["phase"];
  read: number;
  written: number;
  bytes: number;
  total: number | null;
  partitions: { done: number; total: number };
  /** Records of the raw stream under way, about. */
  passing: () => number;
  session: WriteSession | null;
}

/** Runs the sync; never throws: a failure is in the outcome. */
export async function runSync(spec: SyncSpec, ports: RunPorts): Promise<SyncOutcome> {
  const syncId = spec.sync_id ?? derivedSyncId(spec);
  let run = freshRun(spec, syncId, ports.signal);
  const ticker = setInterval(() => ports.onProgress(progressOf(run)), PROGRESS_MS);
  const unchanged: SyncProof = { source_count: null, destination_count: null, checksum: null };
  const attempt = async (raw: boolean) => {
    checkSpec(spec);
    const work = attemptRun(run, ports, raw);
    // What was cut short undoes its work first, as long as that is quick: this process ends when we return.
    const settled = work.then(
      () => {},
      () => {},
    );
    try {
      return await run.dog.race(work);
    } catch (error) {
      await Promise.race([settled, later(UNDO_MS)]);
      throw error;
    }
  };
  try {
    let result: Awaited<ReturnType<typeof attemptRun>>;
    try {
      result = await attempt(true);
    } catch (error) {
      // The fast way cannot tell which row was bad: the slow one can, and keeps the good ones.
      const bad = isMagicError(error) && error.code === "bad_record" && spec.on_bad_record !== "fail";
      if ((!bad && !isReadByRecord(error)) || run.written > 0) throw error;
      run.dog.stop();
      run = freshRun(spec, syncId, ports.signal);
      result = await attempt(false);
    }
    return { ...outcomeOf(run), status: "completed", proof: result.proof, error: null, changed: result.changed };
  } catch (thrown) {
    const error = isMagicError(thrown)
      ? thrown
      : new MagicError("internal", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
    if (process.env["MAGIC_DEBUG"]) process.stderr.write(`${thrown instanceof Error ? thrown.stack : thrown}\n`);
    const canceled = ports.signal.aborted;
    const failure = {
      code: (canceled ? "interrupted" : error.code) satisfies ErrorCode,
      message: shortened(redactText(error.message, secretsOf(spec))),
    };
    // Nothing of a failed run is visible, but for what earlier checkpoints committed.
    return {
      ...outcomeOf(run),
      status: canceled ? "canceled" : "failed",
      records_synced: run.written,
      proof: unchanged,
      error: failure,
      changed: run.written > 0,
    };
  } finally {
    clearInterval(ticker);
    run.dog.stop();
  }
}

async function attemptRun(
  run: Run,
  ports: RunPorts,
  rawAllowed: boolean,
): Promise<{ proof: SyncProof; changed: boolean }> {
  const { spec, dog } = run;
  let source: Source | undefined;
  let destination: Destination | undefined;
  let stream: SourceStream | undefined;
  const object = parseObjectName(spec.source.object);
  const waiting = (what: string) => dog.waiting(what);
  try {
    dog.waiting("the source's connection");
    [source, destination] = await Promise.all([ports.openSource(spec), ports.openDestination(spec)]);
    dog.waiting("the destination's connection");
    const session = await destination.open({
      table: parseObjectName(spec.destination.object),
      syncId: run.syncId,
      stream: spec.source.object,
      stateFile: spec.state_file,
      signal: dog.signal,
      waiting,
    });
    run.session = session;
    run.phase = "discover";
    dog.waiting("the source's connection");
    stream = await source.open({
      object,
      columns: spec.columns,
      mode: spec.mode === "incremental" ? "incremental" : "full_refresh",
      cursorField: spec.cursor_field,
      anyCursor: spec.any_cursor === true,
      primaryKey: spec.primary_key,
      // A destination that was emptied or dropped starts again.
      state: spec.reset || session.existing === null ? null : stateOf(session.committed),
      signal: dog.signal,
      waiting,
    });
    const told = stream.warnings.length;
    run.warnings.push(...stream.warnings, ...session.warnings);
    const plan = writePlan(spec, stream.schema, stream.snapshot);
    if (!spec.reset)
      checkDrift(
        session.existing === null ? null : session.committed.schema,
        stream.schema,
        spec.columns,
        spec.source.object,
      );
    if (!stream.changed && session.existing !== null) {
      const proof = spec.skip_idle_proof ? emptyProof : await countBoth(run, stream, session);
      await session.abort();
      return { proof, changed: false };
    }
    const replaces = plan.kind === "replace" && session.existing !== null && (await session.hasRows?.()) === true;
    await session.begin(plan);
    run.phase = "read";
    const checksum = startChecksum(stream, session, plan);
    await moveAll(run, stream, session, plan, rawAllowed);
    // What only the reading showed.
    run.warnings.push(...stream.warnings.slice(told));
    run.phase = "merge";
    addRejects(run, plan, await session.merge());
    if (replaces) refuseEmptying(run);
    if (plan.deletes !== "ignore" && plan.kind === "upsert" && stream.keys) await session.deleteMissing(stream.keys());
    run.phase = "verify";
    const proof = await prove(run, stream, session, plan, checksum);
    run.phase = "commit";
    // The source's locks would keep a swap waiting where both ends are one database.
    const reached = stream.endState();
    await stream.close();
    await session.commit(reached);
    run.written = run.read - run.rejects.count;
    return { proof, changed: true };
  } catch (error) {
    await Promise.race([run.session?.abort().catch(() => {}), later(1500)]);
    throw error;
  } finally {
    run.session = null;
    await Promise.race([Promise.allSettled([stream?.close(), source?.close(), destination?.close()]), later(1500)]);
  }
}

// A wrong type or a new constraint, not a source that was emptied: good rows would give place to none.
function refuseEmptying({ read, rejects }: Run): void {
  const [first] = rejects.shown;
  if (read === 0 || rejects.count < read || !first) return;
  throw new MagicError(
    "all_rejected",
    `Each of the ${read} records was rejected, and the rows that are there stay. The first, ${first.key}${first.column ? `, column ${first.column}` : ""}: ${first.reason}.`,
  );
}

// People edit their states: a number is meant as its text.
function stateOf({ state }: CommittedState): StreamState | null {
  const cursor: unknown = state?.cursor;
  return typeof cursor === "number" ? { ...state, cursor: String(cursor) } : state;
}

// Every partition, raw where both sides can, else as rows.
async function moveAll(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
  rawAllowed: boolean,
): Promise<void> {
  run.partitions.total = stream.partitions.length;
  run.total = stream.partitions.reduce<number | null>(
    (sum, { records }) => (sum === null || records === null ? null : sum + records),
    0,
  );
  const format = rawAllowed ? stream.rawFormats.find((one) => session.rawFormats.includes(one)) : undefined;
  // What a type may change on the way in is looked at, value by value: by a source of CSV in passing.
  const checks = checksOf(plan.columns, session.existing);
  const unread = format === "csv" || checks.length === 0;
  for (const partition of stream.partitions) {
    if (format && unread && stream.copyRaw && session.writeRaw) {
      const framed = format !== "csv";
      const raw = await stream.copyRaw(partition, { format, framed, types: session.rawTypes, checks });
      run.passing = () => raw.passed?.() ?? 0;
      const { written, bytes } = await session.writeRaw(raw);
      run.passing = nothing;
      const sent = await raw.count();
      run.read += sent ?? written;
      run.bytes += bytes;
      if (sent !== null && sent !== written)
        throw new MagicError(
          // The row-by-row way sees which record it was.
          format === "csv" ? "bad_record" : "proof_failed",
          `The source sent ${sent} rows and the destination took ${written}.`,
        );
    } else await moveRows(run, stream, session, plan, partition);
    run.partitions.done++;
    run.dog.touch();
  }
}

async function moveRows(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
  partition: Partition,
): Promise<void> {
  const convert = converterOf(plan.columns, session.existing);
  const misfit = misfitsOf(checksOf(plan.columns, session.existing));
  const name = keyOf(plan);
  let uncommitted = 0;
  let lastCommit = performance.now();
  let next = 0;
  // Without the rows of which the destination's types would drop something.
  const fitting = (all: readonly Row[], given: readonly number[] | undefined) => {
    const rows: Row[] = [];
    const places: number[] = [];
    const rejects: Reject[] = [];
    for (const [at, row] of all.entries()) {
      const place = given?.[at] ?? next + at;
      const found = misfit?.(row);
      if (found) rejects.push({ key: name(row, place), ...found });
      else {
        rows.push(row);
        places.push(place);
      }
    }
    next = given ? (given.at(-1) ?? next - 1) + 1 : next + all.length;
    addRejects(run, plan, rejects);
    return { rows, places };
  };
  // Rows that nobody needs to look at may come as the destination takes them.
  const types = !convert && !misfit && session.writePacked ? session.rawTypes : undefined;
  for await (const batch of readAhead(joined(stream.read(partition, types)))) {
    const count = countOf(batch);
    run.read += count + (batch.rejects?.length ?? 0);
    run.bytes += batch.bytes;
    addRejects(run, plan, batch.rejects ?? []);
    let rows = convert ? batch.rows.map(convert) : batch.rows;
    let places = batch.places;
    if (misfit) ({ rows, places } = fitting(rows, places));
    if (rows.length > 0) addRejects(run, plan, (await session.write(rows, places)).rejects);
    if (batch.packed) addRejects(run, plan, (await session.writePacked?.(batch.packed))?.rejects ?? []);
    run.dog.touch();
    uncommitted += count;
    const due = uncommitted >= CHECKPOINT_ROWS || performance.now() - lastCommit >= CHECKPOINT_MS;
    if (batch.state && due && plan.kind !== "replace" && uncommitted > 0) {
      addRejects(run, plan, await session.checkpoint(batch.state as StreamState));
      run.written = run.read - run.rejects.count;
      uncommitted = 0;
      lastCommit = performance.now();
    }
  }
}

function addRejects(run: Run, plan: WritePlan, rejects: Parameters<RejectList["add"]>[0]): void {
  if (rejects.length === 0) return;
  run.rejects.add(rejects);
  const [first] = rejects;
  if (plan.onBadRecord === "fail" && first)
    throw new MagicError(
      "bad_record",
      `Record ${first.key}${first.column ? `, column ${first.column}` : ""}: ${first.reason}.`,
    );
}

const nothing = () => 0;
const emptyProof: SyncProof = { source_count: null, destination_count: null, checksum: null };

async function prove(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
  theirs: Promise<string | null> | null,
): Promise<SyncProof> {
  if (plan.kind !== "replace") return countBoth(run, stream, session);
  const wanted = run.read - run.rejects.count;
  const compare = theirs !== null && run.rejects.count === 0 && plan.deletes !== "soft";
  const ours = compare ? ((await session.checksum?.()) ?? null) : null;
  const count = ours?.count ?? (await session.count());
  if (count !== null && count !== wanted)
    throw new MagicError(
      "proof_failed",
      `${run.read} records were read, ${run.rejects.count} rejected, and ${count} are in the destination.`,
    );
  run.dog.waiting("the source's checksum");
  const checksum = ours ? ((await theirs) ?? null) : null;
  if (checksum !== null && checksum !== ours?.checksum)
    throw new MagicError(
      "proof_failed",
      `The checksums differ: ${checksum} at the source, ${ours?.checksum} at the destination.`,
    );
  return { source_count: run.read, destination_count: count, checksum };
}

// Begun before the first row is read and awaited after the last one: it has the whole run to finish. Null: there will be none.
function startChecksum(stream: SourceStream, session: WriteSession, plan: WritePlan): Promise<string | null> | null {
  if (plan.kind !== "replace" || !stream.snapshot || !session.checksum || session.rawTypes.length === 0) return null;
  // A type without a hash function: the counts must do.
  return stream.checksum?.(session.rawTypes)?.catch(() => null) ?? null;
}

async function countBoth(run: Run, stream: SourceStream, session: WriteSession): Promise<SyncProof> {
  run.dog.waiting("the counts");
  const [source, destination] = await Promise.all([stream.count?.() ?? null, session.count()]);
  return { source_count: source, destination_count: destination, checksum: null };
}

function freshRun(spec: SyncSpec, syncId: string, signal: AbortSignal): Run {
  const run: Run = {
    spec,
    syncId,
    dog: createWatchdog(spec.stall_timeout_s, signal, () => (run.session?.bytes?.() ?? 0) + run.bytes + run.read),
    rejects: createRejectList(),
    warnings: [],
    phase: "connect",
    read: 0,
    written: 0,
    bytes: 0,
    total: null,
    partitions: { done: 0, total: 0 },
    passing: nothing,
    session: null,
  };
  return run;
}

function progressOf(run: Run): SyncProgress {
  return {
    phase: run.phase,
    records_read: run.read + run.passing(),
    records_written: run.written,
    records_rejected: run.rejects.count,
    bytes: run.bytes > 0 ? run.bytes : (run.session?.bytes?.() ?? 0),
    records_total: run.total,
    partitions: { ...run.partitions },
    waiting_for: run.dog.waitingFor,
  };
}

function outcomeOf(run: Run) {
  return {
    sync_id: run.syncId,
    records_read: run.read,
    records_synced: run.read - run.rejects.count,
    records_rejected: run.rejects.count,
    bytes: run.bytes,
    rejects: run.rejects.shown,
    warnings: run.warnings,
  };
}

// A name or a value in it may have a megabyte.
function shortened(text: string): string {
  return text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH - 500)} ... ${text.slice(-500)}` : text;
}

function secretsOf(spec: SyncSpec): string[] {
  const secrets: string[] = [];
  for (const end of [spec.source, spec.destination]) {
    secrets.push(...Object.values(end.credentials ?? {}));
    const url = readServerUrl(end.url);
    if (url) secrets.push(decodeURIComponent(url.password));
  }
  return secrets.filter((secret) => secret !== "");
}

const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
