// What the engine needs of a destination. Rows are staged, merged and committed together with the state, or nothing is visible.
import type { DeleteMode, Reject, SyncFailure, SyncSpec } from "#contract/sync.ts";
import type { ExistingColumn, ValueCheck } from "./fit.ts";
import type { ObjectName } from "./name.ts";
import type { PackedRows, RawStream, StreamState } from "./source.ts";
import type { Column, Row, TableSchema, Value } from "./types.ts";

export interface Destination {
  /** Waits for another run of the same sync to end. Throws a MagicError that says what to do. */
  open(request: OpenRequest): Promise<WriteSession>;
  close(): Promise<void>;
}

export interface OpenRequest {
  readonly table: ObjectName;
  readonly syncId: string;
  readonly runId: string;
  /** The source's object, as `_magic_state.stream`. */
  readonly stream: string;
  readonly stateFile: string | null;
  readonly signal: AbortSignal;
  /** Says what the destination is waiting for, e.g. `the lock of public.orders`; for messages and the stall time-out. */
  waiting(what: string): void;
}

/** What was committed by the last run: the source's place, and the schema it was read with. */
export interface CommittedState {
  readonly state: StreamState | null;
  readonly schema: KeptSchema | null;
}

export interface KeptSchema extends TableSchema {
  readonly mapping?: SyncSpec["mapping"];
}

/** The column of soft deletes: when a row was found to have gone at the source. Null: it has not. */
export const DELETED_AT = "_magic_deleted_at";

/**
 * True where rows of the table as it will be may be marked, by this run or by an earlier one that did something else about deletions. A run
 * that finds nothing to do has no plan.
 */
export function mayBeMarked(
  plan: Pick<WritePlan, "kind" | "deletes"> | undefined,
  existing: { readonly columns: readonly { readonly name: string }[] } | null,
): boolean {
  if (plan?.deletes === "soft") return true;
  return plan?.kind !== "replace" && existing?.columns.some(({ name }) => name === DELETED_AT) === true;
}

export interface WritePlan {
  /** replace: shadow table and swap. upsert: by primary key. append: as they come. */
  readonly kind: "replace" | "upsert" | "append";
  /** In the order of the rows' values, with the destination's names. */
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** What the rows there were told apart by in the last run; null where there was none. */
  readonly formerKey: readonly string[] | null;
  /** Columns that the last run brought and this one does not. */
  readonly left: readonly string[];
  /** The source vouches for it that the key is unique and never null. */
  readonly keyCertain: boolean;
  readonly deletes: DeleteMode;
  /** Decides between two rows of one key in one run: the later in reading order wins where null. */
  readonly cursorField: string | null;
  readonly onBadRecord: "quarantine" | "fail";
  /** The schema to keep with the state, as the source gave it, and the names that its columns got. */
  readonly sourceSchema: KeptSchema;
}

export interface WriteResult {
  readonly written: number;
  readonly rejects: readonly Reject[];
}

export interface WriteSession {
  /** Read when the session was opened; with a lock, so that two runs of one sync cannot both go on. */
  readonly committed: CommittedState;
  /** The table's columns, from `begin` on as it altered them; null: it does not exist. Our own (`_magic_...`) are left out. */
  readonly existing: readonly ExistingColumn[] | null;
  /** The check for values of a loose column that the run makes as the source declares it. Absent: nothing is changed in one. */
  fitNew?(column: Column): ValueCheck | null;
  readonly warnings: readonly SyncFailure[];
  /** True where the state lies in a file of its own: the rows may be another place's. */
  readonly stateApart?: boolean;
  /** Bytes moved so far, for progress where nobody else counts them. */
  bytes?(): number;
  /** True where the existing table has rows that are not marked as deleted; only before `begin`. */
  hasRows?(): Promise<boolean>;
  /** Makes the table or alters it (new and wider columns) and whatever the rows are staged in. Throws schema_drift. */
  begin(plan: WritePlan): Promise<void>;
  /** Formats for `writeRaw`, given the plan; empty: rows only. */
  readonly rawFormats: readonly RawStream["format"][];
  /** The destination's PostgreSQL type for every column of the plan; only with rawFormats. */
  readonly rawTypes: readonly string[];
  /** A whole partition in one of `rawFormats`, as its source gave it. */
  writeRaw?(raw: RawStream): Promise<{ readonly written: number; readonly bytes: number }>;
  /** `places`: the rows' numbers in reading order, from 0; without it they follow those before. */
  write(rows: readonly Row[], places?: readonly number[]): Promise<WriteResult>;
  /** As `write`; only with rawTypes, which the rows were packed for. */
  writePacked?(rows: PackedRows): Promise<WriteResult>;
  /**
   * Commits rows and state so far, and goes on; only for upsert and append. `stateAfter` is told of records that turned out bad only now.
   * Absent: nothing is committed before the end.
   */
  checkpoint?(stateAfter: (late: readonly Reject[]) => StreamState): Promise<void>;
  /** False while rows wait for others that may still come: a checkpoint would give them up. Absent: none ever do. */
  mayCheckpoint?(): Promise<boolean>;
  /** Handles rows that have gone; returns how many. `keys` are all the source's primary keys. */
  deleteMissing(keys: AsyncIterable<readonly Value[][]>): Promise<number>;
  /** Merges what was staged; everything but the commit. Returns records that turned out bad only now (e.g. duplicate keys). */
  merge(): Promise<readonly Reject[]>;
  /** Rows in the table as it will be (without soft-deleted ones); null: cannot say. */
  count(): Promise<number | null>;
  /** Count and checksum in one reading; null: cannot (a type without a hash function). */
  checksum?(): Promise<{ readonly count: number; readonly checksum: string } | null>;
  /** Swaps or commits, with the state. After it the rows are visible. */
  commit(state: StreamState | null): Promise<void>;
  /** Undoes everything since the last commit and leaves no table of ours behind. */
  abort(): Promise<void>;
}
