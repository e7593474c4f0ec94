// Where a run goes on. Beside the source's own place the committed state holds which cursor it is of, and what its run had done by
// then: a run that dies goes on after what it committed, and tells of all of it in the end.
import { MagicError } from "#contract/errors.ts";
import type { Reject, SyncSpec } from "#contract/sync.ts";
import type { WritePlan, WriteSession } from "./destination.ts";
import type { StreamState } from "./source.ts";

/** What a run has committed: counts, and the first rejects. */
export interface Done {
  readonly read: number;
  readonly rejected: number;
  readonly bytes: number;
  readonly rejects: readonly Reject[];
}

export const nothingDone: Done = { read: 0, rejected: 0, bytes: 0, rejects: [] };

interface Ours {
  readonly cursor_field: string | null;
  readonly run: Done & { readonly id: string };
}

export interface Start {
  /** The source's; null: read from the beginning. */
  readonly state: StreamState | null;
  /** By earlier attempts of this very run. */
  readonly done: Done;
  /** The last run was a full refresh: the rows are there, and nobody knows up to which cursor. */
  readonly refill: boolean;
  /** The cursor field that the state is of, where it is another one now: its values say nothing of this one's. */
  readonly otherCursor: string | null;
}

export function resumeFrom(spec: SyncSpec, { committed, existing }: WriteSession): Start {
  const anew: Start = { state: null, done: nothingDone, refill: false, otherCursor: null };
  // A destination that was emptied or dropped starts again.
  if (spec.reset || existing === null) return anew;
  if (committed.state === null) return { ...anew, refill: spec.cursor_field !== null && committed.schema !== null };
  const { _magic, ...state } = committed.state as StreamState & { _magic?: Ours };
  const { cursor_field = spec.cursor_field, run } = _magic ?? {};
  if (cursor_field !== spec.cursor_field) return { ...anew, otherCursor: cursor_field ?? "the source's own" };
  // People edit their states: a number is meant as its text.
  const cursor: unknown = state.cursor;
  return {
    ...anew,
    state: typeof cursor === "number" ? { ...state, cursor: String(cursor) } : state,
    done: run?.id === spec.run_id ? run : nothingDone,
  };
}

/** A source's place as it is committed. */
export function keptState(spec: SyncSpec, reached: StreamState, done: Done): StreamState {
  return { ...reached, _magic: { cursor_field: spec.cursor_field, run: { id: spec.run_id, ...done } } satisfies Ours };
}

/** Refuses what would bring every record a second time. */
export function checkCursor({ otherCursor }: Start, { kind }: WritePlan): void {
  if (kind !== "append" || otherCursor === null) return;
  throw new MagicError(
    "validation_failed",
    `The cursor field was ${otherCursor} so far, and without a primary key nobody can tell which records are there: run a full refresh, or name a key.`,
  );
}
