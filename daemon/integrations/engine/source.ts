// What the engine needs of a source. A connector implements Source; the records of a declarative connector come in by records.ts.
import { MagicError } from "#contract/errors.ts";
import type { DiscoveredObject, SyncFailure } from "#contract/sync.ts";
import type { ObjectName } from "./name.ts";
import type { Row, TableSchema, Value } from "./types.ts";

/** Where reading goes on: opaque to the engine but for `cursor`, the greatest cursor value read, as text. Plain JSON. */
export interface StreamState {
  readonly cursor?: string | null;
  readonly [key: string]: unknown;
}

export interface Source {
  /** Throws a MagicError that says what to do: credentials_rejected, unreachable... */
  check(): Promise<void>;
  /** The objects that there are to read, with their columns and keys. */
  discover(): Promise<readonly DiscoveredObject[]>;
  /** Begins to read one object. Throws a MagicError that says what to do. */
  open(request: ReadRequest): Promise<SourceStream>;
  /** True where the state is certainly of this very source, though its address is another one now. */
  knows?(state: StreamState): Promise<boolean>;
  close(): Promise<void>;
}

export interface ReadRequest {
  readonly object: ObjectName;
  /** Columns to read, in order; null: all. An unknown one is an error. */
  readonly columns: readonly string[] | null;
  readonly mode: "full_refresh" | "incremental";
  readonly cursorField: string | null;
  /** True: an incremental run must find every change by itself, or refuse. */
  readonly allChanges: boolean;
  /** null: as the source declares it. */
  readonly primaryKey: readonly string[] | null;
  /** The committed state; null: read from the beginning. */
  readonly state: StreamState | null;
  /** What the last run found here; null: nothing is known. */
  readonly known?: TableSchema | null;
  /** Aborted when the run is cancelled or stalls; every wait must end then. */
  readonly signal: AbortSignal;
  /** Says what the source is waiting for, e.g. `rows of public.orders`; for messages and the stall time-out, which begins `forMs` later. */
  waiting(what: string, forMs?: number): void;
}

/** A part of the object that can be read by itself, in any order. */
export interface Partition {
  readonly id: string;
  /** An estimate; null where unknown. */
  readonly records: number | null;
}

/** Rows as a source made them ready for PostgreSQL: tuples of binary COPY. None of them was rejected. */
export interface PackedRows {
  /** CopyData messages, headers and all, without the header and the end of the whole. */
  readonly tuples: readonly Buffer[];
  readonly count: number;
  /** The same rows, for a destination that refuses one of the tuples. */
  rows(): readonly Row[];
  /** The tuples are in the destination: their memory may be used again. */
  done(): void;
}

/** Rows, values in the order of the schema's columns; `state` where reading can resume after them (a checkpoint). */
export interface Batch {
  /** Empty where the batch is packed. */
  readonly rows: readonly Row[];
  readonly packed?: PackedRows;
  /** Bytes read for it, about. */
  readonly bytes: number;
  readonly state?: StreamState;
  /** The rows' numbers in reading order, from 0; without it they follow those before. */
  readonly places?: readonly number[];
  /** Records that could not be read at all. */
  readonly rejects?: readonly { readonly key: string; readonly column: string | null; readonly reason: string }[];
}

/** Bytes that a destination may take without anybody parsing them. */
export interface RawStream {
  readonly format: "pg-binary" | "pg-text" | "csv";
  /** True: the bytes are PostgreSQL's CopyData messages, headers and all. */
  readonly framed?: boolean;
  readonly stream: NodeJS.ReadableStream;
  /** The source's words for an error of `stream`. */
  explain?(error: unknown): Error;
  /** Records in it; asked for when the stream has ended. */
  count(): Promise<number | null>;
  /** Records that have gone by so far, about: for progress. */
  passed?(): number;
}

/** A field, by its place among the columns, that its destination may not keep as it is; see fit.ts. */
export interface FieldCheck {
  readonly at: number;
  readonly check: (value: Value) => string | null;
}

const mustBeRead = new Error("the records must be read one by one");

/** Thrown by a raw stream whose bytes must not go on unread: the run begins again, record by record. */
export function readByRecord(): MagicError {
  return new MagicError("bad_record", "A record must be looked at by itself.", { cause: mustBeRead });
}

/** Whether it is that error. */
export function isReadByRecord(error: unknown): boolean {
  return (error as { cause?: unknown } | null)?.cause === mustBeRead;
}

/** What a destination's columns look like, for a source that can convert while it reads. */
export interface RawRequest {
  readonly format: RawStream["format"];
  readonly framed?: boolean;
  /** For every source column the destination's PostgreSQL type. */
  readonly types: readonly string[];
  /** What a source of a format that it understands (csv) looks at on the way; see readByRecord. */
  readonly checks?: readonly FieldCheck[];
}

export interface SourceStream {
  readonly schema: TableSchema;
  /** True: the partitions together are one consistent picture, which `count` and `checksum` describe. */
  readonly snapshot: boolean;
  /** False: nothing changed since `state`; the run has nothing to do. */
  readonly changed: boolean;
  /** True: a row that is not read was there, as it is, when `state` was kept; `count` counts all of them. */
  readonly exact?: boolean;
  /** May grow while rows are read. */
  readonly warnings: readonly SyncFailure[];
  readonly partitions: readonly Partition[];
  /** `types`: PostgreSQL's, by column, of a destination that takes batches packed for them as well. */
  read(partition: Partition, types?: readonly string[]): AsyncIterable<Batch>;
  /** The formats in which `copyRaw` can give a partition, best first. */
  readonly rawFormats: readonly RawStream["format"][];
  /** The partition's bytes in one of `rawFormats`, for a destination that takes them unread. */
  copyRaw?(partition: Partition, request: RawRequest): Promise<RawStream>;
  /** State after everything was read. */
  endState(): StreamState | null;
  /** All rows of the object at the snapshot, also those that an incremental run does not read. */
  count?(): Promise<number | null>;
  /** See postgres/checksum.ts; null: cannot, or it would cost too much. Asked for before the first row is read. */
  checksum?(types: readonly string[]): Promise<string | null> | null;
  /** The primary keys of all rows, for finding deleted ones; absent where the source cannot tell, perhaps only after its rows were read. */
  readonly keys?: (() => AsyncIterable<readonly Value[][]>) | undefined;
  close(): Promise<void>;
}
