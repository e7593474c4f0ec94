// What is known of a run while it goes on: counts, rejects, what it waits for; and what is told of it.
import { MagicError } from "#contract/errors.ts";
import { REJECTS_SHOWN, type Reject, type SyncProgress, type SyncSpec } from "#contract/sync.ts";
import type { WritePlan, WriteSession } from "./destination.ts";
import { createRejectList, type RejectList } from "./rejects.ts";
import { type Done, nothingDone } from "./resume.ts";
import { createWatchdog, type Watchdog } from "./watchdog.ts";

export interface Run {
  readonly spec: SyncSpec;
  readonly syncId: string;
  readonly dog: Watchdog;
  rejects: RejectList;
  readonly warnings: { code: string; message: string }[];
  /** What attempts before this one have committed: their records are not read again. */
  before: Done;
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

export function freshRun(spec: SyncSpec, syncId: string, signal: AbortSignal): Run {
  const run: Run = {
    spec,
    syncId,
    dog: createWatchdog(spec.stall_timeout_s, signal, () => (run.session?.bytes?.() ?? 0) + run.bytes + run.read),
    rejects: createRejectList(),
    warnings: [],
    before: nothingDone,
    phase: "connect",
    read: 0,
    written: 0,
    bytes: 0,
    total: null,
    partitions: { done: 0, total: 0 },
    passing: () => 0,
    session: null,
  };
  return run;
}

export function progressOf(run: Run): SyncProgress {
  return {
    phase: run.phase,
    records_read: run.before.read + run.read + run.passing(),
    records_written: run.before.read - run.before.rejected + run.written,
    records_rejected: run.before.rejected + run.rejects.count,
    bytes: run.before.bytes + (run.bytes > 0 ? run.bytes : (run.session?.bytes?.() ?? 0)),
    records_total: run.total,
    partitions: { ...run.partitions },
    waiting_for: run.dog.waitingFor,
  };
}

export function outcomeOf(run: Run) {
  const { read, rejected, bytes, rejects } = doneOf(run);
  return {
    sync_id: run.syncId,
    records_read: read,
    records_synced: read - rejected,
    records_rejected: rejected,
    ...{ bytes, rejects },
    warnings: run.warnings,
  };
}

export function addRejects(run: Run, plan: WritePlan, rejects: readonly Reject[]): void {
  if (rejects.length === 0) return;
  run.rejects.add(rejects);
  if (plan.onBadRecord === "fail") refuseRejects(rejects);
}

/** Throws bad_record for the first of them. */
export function refuseRejects([first]: readonly Reject[]): void {
  if (!first) return;
  throw new MagicError(
    "bad_record",
    `Record ${first.key}${first.column ? `, column ${first.column}` : ""}: ${first.reason}.`,
  );
}

/** The same records will be moved once more: what was counted of them counts no longer. */
export function startOver(run: Run): void {
  run.rejects = createRejectList();
  run.read = 0;
  run.bytes = 0;
  run.partitions = { done: 0, total: 0 };
}

/** All that this run has done, attempts before this one with it. */
export function doneOf({ before, read, rejects, bytes }: Run): Done {
  return {
    read: before.read + read,
    rejected: before.rejected + rejects.count,
    bytes: before.bytes + bytes,
    rejects: [...before.rejects, ...rejects.shown].slice(0, REJECTS_SHOWN),
  };
}
