// What a cursor is: which intervals a partition is read in, how an interval goes into requests, and what was read last.
import type { RequestParts } from "../http/options.ts";
import type { DataRecord } from "./records.ts";

export interface Interval {
  readonly variables: Readonly<Record<string, unknown>>;
  /** A comparable position that records of this interval do not pass. */
  readonly end: bigint | null;
}

export interface Cursor {
  readonly field: string;
  /** The intervals to read, oldest first, from the state's value (null: from the beginning). */
  intervals(cursor: string | null): Interval[];
  parts(interval: Interval): RequestParts;
  /** The latest of the cursor and the records' values: one page at a time, because writing it for each record takes long. */
  advance(cursor: string | null, records: readonly DataRecord[], interval: Interval): string | null;
  /** The interval from a cursor value on; undefined: it began there or later already. */
  narrowed(interval: Interval, cursor: string | null): Interval | undefined;
  /** Both halves of an interval; undefined: it is as short as the granularity, or as `least` microseconds. */
  halves(interval: Interval, least: bigint | undefined): Interval[] | undefined;
  /** False: the record is older than what was asked for, and the manifest says to drop it here. */
  wanted(record: DataRecord, cursor: string | null): boolean;
  /** The time that a cursor value means, in microseconds since the epoch; undefined: it means none. */
  time(cursor: string): bigint | undefined;
  /** The later of two cursor values. */
  later(a: string, b: string): string;
  /** A cursor value so many seconds before this one, where it is a time. */
  before(cursor: string, seconds: number): string;
  /** True: pages come newest first, and this page ends with what was read already. */
  exhausted(records: readonly DataRecord[], cursor: string | null): boolean;
}
