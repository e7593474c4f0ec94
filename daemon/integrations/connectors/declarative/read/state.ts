// Where reading a declarative stream goes on: one cursor, or one a partition. Opaque to whoever keeps it.
import type { Clock } from "#shared/clock.ts";
import { isRecord } from "../manifest/component.ts";

export interface ConnectorState {
  /** The latest cursor of all, as text; null: nothing read yet. */
  readonly cursor: string | null;
  readonly partitions?: readonly { readonly partition: Readonly<Record<string, unknown>>; readonly cursor: string }[];
  /** States of parent streams that are read on from there, by name. */
  readonly parents?: Readonly<Record<string, unknown>>;
}

export interface KnownState {
  readonly empty: boolean;
  readonly cursor: string | null;
  readonly partitions: ReadonlyMap<
    string,
    { readonly partition: Readonly<Record<string, unknown>>; readonly cursor: string }
  >;
  readonly parents: Readonly<Record<string, unknown>>;
}

export interface StateTracker {
  /** Where this partition's reading begins; null: at the beginning. */
  cursorOf(partition: Readonly<Record<string, unknown>>): string | null;
  /** A slice of the partition was read wholly. */
  done(partition: Readonly<Record<string, unknown>>, cursor: string | null): void;
  /** Where a parent stream has ended: it counts once all its partitions were read. */
  parentDone(name: string, state: unknown): void;
  /** True when it is time for a checkpoint: after every slice while the state is small, then once a second. */
  due(): boolean;
  /** `whole`: everything was read. */
  snapshot(whole?: boolean): ConnectorState;
}

const SMALL = 100;

/** What was kept, leniently: anything else counts as no state. */
export function readState(value: unknown): KnownState {
  const state = isRecord(value) ? value : {};
  const partitions = new Map<string, { partition: Readonly<Record<string, unknown>>; cursor: string }>();
  for (const each of Array.isArray(state["partitions"]) ? state["partitions"] : [])
    if (isRecord(each) && isRecord(each["partition"]) && typeof each["cursor"] === "string")
      partitions.set(keyOf(each["partition"]), { partition: each["partition"], cursor: each["cursor"] });
  const cursor = typeof state["cursor"] === "string" ? state["cursor"] : null;
  const parents = isRecord(state["parents"]) ? state["parents"] : {};
  return { empty: cursor === null && partitions.size === 0, cursor, partitions, parents };
}

/** The same whatever the order of the keys. */
export function keyOf(partition: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(partition, (_key, value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

export function stateTracker(known: KnownState, partitioned: boolean, clock: Clock): StateTracker {
  const partitions = new Map(known.partitions);
  // The latest cursor of partitions says nothing of the others: a stream that has none any more is read from its beginning.
  let latest = !partitioned && known.partitions.size > 0 ? null : known.cursor;
  let lastSnapshot = clock.monotonic();
  const parents = new Map(Object.entries(known.parents));
  return {
    cursorOf: (partition) => (partitioned ? (known.partitions.get(keyOf(partition))?.cursor ?? null) : latest),
    done(partition, cursor) {
      if (cursor === null) return;
      if (partitioned) partitions.set(keyOf(partition), { partition, cursor });
      if (!partitioned || latest === null || cursor > latest) latest = cursor;
    },
    parentDone: (name, state) => void parents.set(name, state),
    due() {
      if (partitions.size > SMALL && clock.monotonic() - lastSnapshot < 1000) return false;
      lastSnapshot = clock.monotonic();
      return true;
    },
    snapshot(whole = false) {
      const states = whole ? Object.fromEntries(parents) : known.parents;
      return {
        cursor: latest,
        ...(partitioned ? { partitions: [...partitions.values()] } : {}),
        ...(Object.keys(states).length ? { parents: states } : {}),
      };
    },
  };
}
