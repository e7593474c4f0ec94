// Where a run goes on. Beside the source's own place the committed state holds which source and which cursor it is of, and what its run
// had done by then: a run that dies goes on after what it committed, and tells of all of it in the end.
import { MagicError } from "#contract/errors.ts";
import type { DeleteMode, Reject, SyncFailure, SyncProof, SyncSpec } from "#contract/sync.ts";
import type { WritePlan, WriteSession } from "./destination.ts";
import { sameKey } from "./keys.ts";
import { placeOf } from "./plan.ts";
import type { Source, SourceStream, StreamState } from "./source.ts";

/** What a run has committed: counts, and the first rejects. */
export interface Done {
  readonly read: number;
  readonly rejected: number;
  readonly bytes: number;
  readonly rejects: readonly Reject[];
}

export const nothingDone: Done = { read: 0, rejected: 0, bytes: 0, rejects: [] };

/** Rows at both ends; null where nobody counted them. */
type Counts = Pick<SyncProof, "source_count" | "destination_count">;

interface Ours {
  readonly source?: string;
  readonly destination?: string;
  readonly cursor_field: string | null;
  readonly deletes?: DeleteMode | null;
  readonly counts?: Counts;
  readonly run: Done & { readonly id: string };
}

export interface Start {
  /** The source's; null: read from the beginning. */
  readonly state: StreamState | null;
  /** By earlier attempts of this very run. */
  readonly done: Done;
  /** The last run was a full refresh: the rows are there, and nobody knows up to which cursor. */
  readonly refill: boolean;
  /** What the last run did about rows that have gone. */
  readonly deletes: DeleteMode | null;
  /** Behind the last run; null: it has not come to its end. */
  readonly counts: Counts | null;
  /** What was another one when the state was kept, which says nothing of what is read now. */
  readonly other: { readonly what: "cursor" | "mapping" | "source" | "destination"; readonly detail: string } | null;
}

/** What a run has committed of what it is to do, by the state that it is begun with. */
export function doneBy(runId: string, state: StreamState | null): Done {
  const { run } = (state as { _magic?: Ours } | null)?._magic ?? {};
  return run?.id === runId ? run : nothingDone;
}

export async function resumeFrom(spec: SyncSpec, session: WriteSession, source: Source): Promise<Start> {
  const { committed, existing } = session;
  const anew: Start = { state: null, done: nothingDone, refill: false, deletes: null, counts: null, other: null };
  // A table that was dropped and a file that was removed or emptied start again.
  if (spec.reset || existing === null) return anew;
  if (committed.state === null) return { ...anew, refill: spec.cursor_field !== null && committed.schema !== null };
  const { _magic, ...state } = committed.state as StreamState & { _magic?: Ours };
  const { cursor_field = spec.cursor_field } = _magic ?? {};
  const [from, to] = [placeOf(spec.source), placeOf(spec.destination)];
  if (cursor_field !== spec.cursor_field) {
    const detail = `The cursor field was ${cursor_field ?? "the source's own"} so far`;
    return { ...anew, other: { what: "cursor", detail } };
  }
  // A column that has another's name now would hold the values of both.
  const { mapping = spec.mapping, columns = [] } = committed.schema ?? {};
  const read = columns.filter(({ name }) => spec.columns === null || spec.columns.includes(name));
  if (read.some(({ name }) => mapped(mapping, name) !== mapped(spec.mapping, name)))
    return { ...anew, other: { what: "mapping", detail: "The columns had other names so far" } };
  // Where the state lies beside the rows they are the ones it tells of.
  if (session.stateApart && (_magic?.destination ?? to) !== to)
    return existing.length === 0
      ? anew
      : { ...anew, other: { what: "destination", detail: "Another file was written so far" } };
  if ((_magic?.source ?? from) !== from && !(await source.knows?.(state)))
    return { ...anew, other: { what: "source", detail: "The address led to another source so far" } };
  // People edit their states: a number is meant as its text.
  const cursor: unknown = state.cursor;
  return {
    ...anew,
    state: typeof cursor === "number" ? { ...state, cursor: String(cursor) } : state,
    done: doneBy(spec.run_id, committed.state),
    deletes: _magic?.deletes ?? null,
    counts: _magic?.counts ?? null,
  };
}

/**
 * True where a keyed run brings columns that the rows there do not have yet: at the source old rows may have values in them too, by a
 * default or because they were filled in later, and no cursor tells. So it is with a column that another one's name leads to now, and with
 * one whose enum calls a label otherwise. Sources without a snapshot are not read anew for that.
 */
export function lacksColumns(
  spec: SyncSpec,
  { schema, snapshot }: Pick<SourceStream, "schema" | "snapshot">,
  { committed, existing }: WriteSession,
): boolean {
  if (!snapshot || schema.primaryKey.length === 0) return false;
  const before = committed.schema?.columns;
  return schema.columns.some(({ name, place, spelling = {} }) => {
    const old = before?.find((column) => column.name === name);
    const another = old?.place !== undefined && place !== undefined && old.place !== place;
    // An HTTP endpoint has none.
    const lacks = existing?.length && existing.every((column) => column.name !== mapped(spec.mapping, name));
    const respelled = Object.entries(spelling).some(([id, word]) => (old?.spelling?.[id] ?? word) !== word);
    return (before && !old) || another || respelled || lacks;
  });
}

/** What the last run brought and told rows apart by, under the destination's names; null where no run has told. */
export function formerTable(
  spec: SyncSpec,
  { committed, existing }: WriteSession,
): { readonly key: readonly string[]; readonly columns: readonly string[] } | null {
  if (existing === null || committed.schema === null) return null;
  const { mapping = spec.mapping, primaryKey, columns } = committed.schema;
  const there = (name: string) => mapped(mapping, name);
  return { key: primaryKey.map(there), columns: columns.map(({ name }) => there(name)) };
}

function mapped(mapping: SyncSpec["mapping"], name: string): string {
  return mapping && Object.hasOwn(mapping, name) ? (mapping[name] as string) : name;
}

/** A source's place as it is committed; `counts`: of a run that has come to its end. */
export function keptState(
  spec: SyncSpec,
  { deletes }: WritePlan,
  reached: StreamState,
  done: Done,
  counts?: Counts,
): StreamState {
  const ours: Ours = {
    source: placeOf(spec.source),
    destination: placeOf(spec.destination),
    cursor_field: spec.cursor_field,
    deletes,
    ...(counts && { counts: { source_count: counts.source_count, destination_count: counts.destination_count } }),
    run: { id: spec.run_id, ...done },
  };
  return { ...reached, _magic: ours };
}

/** Refuses what would bring every record a second time. */
export function checkResumed(
  { state, other }: Start,
  { kind, primaryKey, formerKey }: WritePlan,
): readonly SyncFailure[] {
  const key = formerKey ?? [];
  // The old key's index would refuse records that the new one tells apart, and what it refused would not be read again.
  if (kind === "upsert" && key.length > 0 && other?.what !== "destination" && !sameKey(key, primaryKey))
    throw new MagicError(
      "schema_drift",
      `Records were told apart by ${key.join(", ")} so far, and now by ${primaryKey.join(", ")}: run a full refresh, or name the former key with --primary-key. Nothing was changed.`,
    );
  if (kind === "append" && state !== null && key.length > 0)
    throw new MagicError(
      "schema_drift",
      `Records were told apart by ${key.join(", ")} so far, and now there is no primary key: changed ones would come a second time. Name it with --primary-key, or run a full refresh. Nothing was changed.`,
    );
  if (other === null || kind === "replace") return [];
  if (kind === "append")
    throw new MagicError(
      "validation_failed",
      `${other.detail}, and without a primary key nobody can tell which records are there: run a full refresh, or name a key.`,
    );
  if (other.what !== "source") return [];
  return [
    {
      code: "source_changed",
      message: `${other.detail}: everything was read again. Rows that only the other one had stay, unless deletions are followed; a full refresh replaces them.`,
    },
  ];
}
