// One run: check -> discover -> plan -> read -> write -> merge -> verify -> commit, in this order, and everything undone when it fails.
import { type ErrorCode, isMagicError, MagicError } from "#contract/errors.ts";
import type { SyncOutcome, SyncProgress, SyncProof, SyncSpec } from "#contract/sync.ts";
import { redactText } from "#shared/redact.ts";
import { followDeletions, followsDeletions, sameCounts, unfollowed } from "./deletions.ts";
import type { Destination, WritePlan } from "./destination.ts";
import { checkDrift, grown } from "./evolution.ts";
import { moveAll } from "./move.ts";
import { parseObjectName } from "./name.ts";
import { checkSpec, derivedSyncId, writePlan } from "./plan.ts";
import { countBoth, emptiedWarning, emptyProof, prove, startChecksum } from "./proof.ts";
import { storable } from "./rejects.ts";
import { checkResumed, formerTable, keptState, lacksColumns, resumeFrom } from "./resume.ts";
import { doneOf, freshRun, outcomeOf, progressOf, type Run, refuseRejects, startOver } from "./run-record.ts";
import { secretsOf } from "./secrets.ts";
import { isReadByRecord, type Source, type SourceStream } from "./source.ts";

export interface RunPorts {
  openSource(spec: SyncSpec): Promise<Source>;
  openDestination(spec: SyncSpec): Promise<Destination>;
  onProgress(progress: SyncProgress): void;
  /** Aborted to cancel the run. */
  readonly signal: AbortSignal;
}

const PROGRESS_MS = 250;
const UNDO_MS = 1000;
const MESSAGE_LENGTH = 2000;
const CONFLICTS = 3;

/** Runs the sync; never throws: a failure is in the outcome. */
export async function runSync(spec: SyncSpec, ports: RunPorts): Promise<SyncOutcome> {
  const syncId = spec.sync_id ?? derivedSyncId(spec);
  let run = freshRun(spec, syncId, ports.signal);
  const ticker = setInterval(() => ports.onProgress(progressOf(run)), PROGRESS_MS);
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
    let result: Awaited<ReturnType<typeof attemptRun>> | undefined;
    let raw = true;
    for (let conflicts = 0; !result; ) {
      try {
        result = await attempt(raw);
      } catch (error) {
        // The fast way cannot tell which row was bad: the slow one can, and keeps the good ones.
        const bad = isMagicError(error) && error.code === "bad_record" && spec.on_bad_record !== "fail";
        const slower = raw && (bad || isReadByRecord(error));
        const again = isConflict(error) || (run.read === 0 && isOutdated(error));
        if (run.written > 0 || (!slower && !(again && conflicts++ < CONFLICTS))) throw error;
        if (slower) raw = false;
        run.dog.stop();
        run = freshRun(spec, syncId, ports.signal);
      }
    }
    return { ...outcomeOf(run), status: "completed", proof: result.proof, error: null, changed: result.changed };
  } catch (thrown) {
    const error = isMagicError(thrown)
      ? thrown
      : new MagicError("internal", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
    if (process.env["MAGIC_DEBUG"]) process.stderr.write(`${thrown instanceof Error ? thrown.stack : thrown}\n`);
    const canceled = ports.signal.aborted;
    const secrets = [...secretsOf(spec.source), ...secretsOf(spec.destination)];
    const failure = {
      code: (canceled ? "interrupted" : error.code) satisfies ErrorCode,
      message: canceled ? "The run was cancelled." : storable(shortened(redactText(error.message, secrets))),
    };
    // Nothing of a failed run is visible, but for what earlier checkpoints committed.
    return {
      ...outcomeOf(run),
      status: canceled ? "canceled" : "failed",
      records_synced: run.before.read - run.before.rejected + run.written,
      proof: emptyProof,
      error: failure,
      changed: run.before.read + run.written > 0,
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
  const { waiting } = dog;
  try {
    dog.waiting("the source's connection");
    [source, destination] = await Promise.all([ports.openSource(spec), ports.openDestination(spec)]);
    dog.waiting("the destination's connection");
    const session = await destination.open({
      table: parseObjectName(spec.destination.object),
      syncId: run.syncId,
      runId: spec.run_id,
      stream: spec.source.object,
      stateFile: spec.state_file,
      signal: dog.signal,
      waiting,
    });
    run.session = session;
    const from = await resumeFrom(spec, session, source);
    run.phase = "discover";
    dog.waiting("the source's connection");
    const request = {
      object,
      columns: spec.columns,
      mode: spec.mode === "full_refresh" ? "full_refresh" : "incremental",
      cursorField: spec.cursor_field,
      allChanges: spec.mode === "cdc",
      primaryKey: spec.primary_key,
      state: from.state,
      known: session.existing === null ? null : session.committed.schema,
      signal: dog.signal,
      waiting,
    } as const;
    stream = await source.open(request);
    if (from.state !== null && lacksColumns(spec, stream, session)) {
      await stream.close();
      stream = await source.open({ ...request, state: null });
    }
    // No database can make a table of no column (an empty file of JSON Lines).
    if (stream.schema.columns.length === 0 && session.existing === null && !session.stateApart) {
      await session.abort();
      return { proof: { ...emptyProof, source_count: 0, destination_count: 0 }, changed: false };
    }
    const told = stream.warnings.length;
    run.warnings.push(...stream.warnings, ...session.warnings);
    const schema = { ...stream.schema, columns: grown(stream.schema.columns, session.committed.schema) };
    const apart = session.stateApart === true;
    const plan = writePlan(spec, schema, stream.snapshot, from.refill, formerTable(spec, session), apart);
    run.warnings.push(...checkResumed(from, plan), ...leftBehind(spec, plan));
    if (plan.kind !== "replace") run.before = from.done;
    if (!spec.reset)
      checkDrift(
        session.existing === null ? null : session.committed.schema,
        stream.schema,
        spec.columns,
        spec.source.object,
      );
    // Of tables only: an emptied file starts again, and to look into one ends its reader.
    const resumed = from.state !== null && plan.kind !== "replace" && !spec.skip_idle_proof && !session.stateApart;
    const emptied = resumed && (await session.hasRows?.()) === false;
    if (!stream.changed && !unfollowed(from, plan) && session.existing !== null) {
      const proof = spec.skip_idle_proof ? emptyProof : await countBoth(run, stream, session);
      if (emptied) run.warnings.push(...emptiedWarning(run, proof));
      await session.abort();
      return { proof, changed: false };
    }
    const replaces = plan.kind === "replace" && session.existing !== null && (await session.hasRows?.()) === true;
    await session.begin(plan);
    const checksum = startChecksum(stream, session, plan);
    await moveAll(run, stream, session, plan, rawAllowed);
    if (replaces) refuseEmptying(run, plan);
    let gone = 0;
    const same = await sameCounts(run, from, stream, session, plan);
    if (followsDeletions(plan) && !same) {
      gone = await followDeletions(run, stream, session, plan);
      // A row that has gone may have had what a record was refused for, the value of a unique column: all of them come once more.
      if (plan.deletes === "hard" && gone > 0 && run.rejects.count > 0) {
        startOver(run);
        await moveAll(run, stream, session, plan, rawAllowed);
      }
    }
    if (spec.on_bad_record === "fail") refuseRejects(run.rejects.shown);
    // What only the reading showed.
    run.warnings.push(...stream.warnings.slice(told));
    run.phase = "verify";
    const proof = same ?? (await prove(run, stream, session, plan, checksum));
    if (emptied) run.warnings.push(...emptiedWarning(run, proof));
    run.phase = "commit";
    // The source's locks would keep a swap waiting where both ends are one database.
    const reached = stream.endState();
    await stream.close();
    await session.commit(reached && keptState(spec, plan, reached, doneOf(run), proof));
    run.written = run.read - run.rejects.count;
    return { proof, changed: replaces || gone > 0 || run.written > 0 };
  } catch (error) {
    await Promise.race([run.session?.abort().catch(() => {}), later(1500)]);
    throw error;
  } finally {
    run.session = null;
    await Promise.race([Promise.allSettled([stream?.close(), source?.close(), destination?.close()]), later(1500)]);
  }
}

// Who wants every change should know which do not come.
function leftBehind({ mode, deletes }: SyncSpec, plan: WritePlan): Run["warnings"] {
  if (mode !== "cdc" || deletes !== null || plan.deletes !== "ignore") return [];
  const message = "No record is taken out of a file or sent to an endpoint as deleted: those that have gone stay.";
  return [{ code: "deletions_not_followed", message }];
}

// A wrong type or a new constraint, not a source that was emptied: good rows would give place to none.
function refuseEmptying({ read, rejects }: Run, { left }: WritePlan): void {
  const [first] = rejects.shown;
  if (read === 0 || rejects.count < read || !first) return;
  const { key, column, reason } = first;
  // Its key above all, after the source's was renamed.
  const unread =
    column !== null && left.includes(column)
      ? ` Nothing is read into ${JSON.stringify(column)} any more: drop the column there, or the table, which is then made anew.`
      : "";
  throw new MagicError(
    "all_rejected",
    `Each of the ${read} records was rejected, and the rows that are there stay. The first, ${key}${column ? `, column ${column}` : ""}: ${reason}.${unread}`,
  );
}

// What a server gave up for the sake of another transaction (a deadlock, a standby that catches up, a record that is changed or a table
// that is altered behind a MySQL snapshot, a table or column that two runs were about to make): PostgreSQL's and MySQL's codes.
function isConflict(error: unknown): boolean {
  return isOneOf(error, ["40P01", "40001", "42701"], [1020, 1050, 1060, 1213, 1412]);
}

// A table or a column went, or was called otherwise, after it was looked at and before the first record: PostgreSQL's and MySQL's codes.
function isOutdated(error: unknown): boolean {
  return isOneOf(error, ["42P01", "42703"], [1054, 1091, 1146]);
}

function isOneOf(error: unknown, codes: readonly string[], errnos: readonly number[]): boolean {
  const { code = "", errno = 0 } = ((error as Error | null)?.cause ?? {}) as { code?: string; errno?: number };
  return codes.includes(code) || errnos.includes(errno);
}

// A name or a value in it may have a megabyte.
function shortened(text: string): string {
  return text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH - 500)} ... ${text.slice(-500)}` : text;
}

const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
