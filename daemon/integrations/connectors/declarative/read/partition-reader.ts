// One partition of a stream: its intervals, oldest first, their pages, and how far each was read.
import type { Slice } from "../context.ts";
import { emptyParts, merge } from "../http/options.ts";
import type { Cursor, Interval } from "./cursor.ts";
import type { Pack, PackedPage } from "./pack.ts";
import type { Partition } from "./partition.ts";
import type { DataRecord } from "./records.ts";
import type { Question, Retriever } from "./retrieve.ts";
import type { StateTracker } from "./state.ts";
import type { Halves } from "./window.ts";

export interface RecordsEvent {
  readonly type: "records";
  readonly records: DataRecord[];
  readonly partition: Partition["values"];
}

/** A page that was packed instead of read. */
export interface PackedEvent {
  readonly type: "packed";
  readonly page: PackedPage;
}

/** `slice`: an interval was read wholly, and the tracker knows. */
type PartitionEvent = RecordsEvent | PackedEvent | { readonly type: "slice" };

/** Without `pack` no page is packed. */
type ReadPartition = (partition: Partition, tracker: StateTracker, pack?: Pack) => AsyncGenerator<PartitionEvent>;

/** @param halves of an interval that the vendor refuses. */
export function partitionReaderOf(retrieve: Retriever, cursor: Cursor | undefined, halves: Halves): ReadPartition {
  return async function* (partition, tracker, pack) {
    let position = tracker.cursorOf(partition.values);
    const begin = position;
    for (const interval of cursor ? cursor.intervals(position) : [undefined]) yield* readInterval(interval, 0);

    async function* readInterval(interval: Interval | undefined, depth: number): AsyncGenerator<PartitionEvent> {
      const before = position;
      try {
        yield* readPages(interval);
      } catch (error) {
        const parts = halves(error, interval, depth);
        // What came before the refusal comes again: until then it counts as not read.
        position = before;
        for (const part of parts) yield* readInterval(part, depth + 1);
        return;
      }
      if (cursor) tracker.done(partition.values, position);
      yield { type: "slice" };
    }

    async function* readPages(interval: Interval | undefined): AsyncGenerator<RecordsEvent | PackedEvent> {
      const { slice, parts } = questionOf(partition, cursor, interval);
      let from = interval;
      const rest = (): Question | undefined => {
        from = from && cursor?.narrowed(from, position);
        return from && questionOf(partition, cursor, from);
      };
      const stateVariables = cursor && begin !== null ? { [cursor.field]: begin } : {};
      const stop = (records: readonly DataRecord[]): boolean => cursor?.exhausted(records, begin) ?? false;
      // What stands in the parent's record begins at the beginning: a partition that is read on is asked for what is new.
      const embedded = begin === null ? partition.embedded : undefined;
      const asked = [slice, parts, stateVariables, stop, rest, embedded] as const;
      // A cursor looks at every record.
      for await (const page of retrieve.pages(...asked, cursor ? undefined : pack)) {
        if (!Array.isArray(page)) {
          yield { type: "packed", page };
          continue;
        }
        const records = cursor ? page.filter((record) => cursor.wanted(record, begin)) : page;
        if (cursor && interval) position = cursor.advance(position, records, interval);
        if (records.length) yield { type: "records", records, partition: partition.values };
      }
    }
  };
}

function questionOf(partition: Partition, cursor: Cursor | undefined, interval: Interval | undefined): Question {
  const slice: Slice = { partition: partition.values, interval: interval?.variables ?? {}, extra: partition.extra };
  const parts = cursor && interval ? merge(partition.parts, cursor.parts(interval)) : (partition.parts ?? emptyParts());
  return { slice, parts };
}
