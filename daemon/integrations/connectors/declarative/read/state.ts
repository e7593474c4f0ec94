// Where reading a declarative stream goes on: one cursor, or one a partition. Opaque to whoever keeps it.
import type { Clock } from "#shared/clock.ts";
import { isRecord } from "../manifest/component.ts";

export interface ConnectorState {
  /** The latest cursor of all, as text; null: nothing read yet. */
  readonly cursor: string | null;
  readonly partitions?: readonly { readonly partition: Readonly<Record<string, unknown>>; readonly cursor: string }[];
}

export interface KnownState {
  readonly empty: boolean;
  readonly cursor: string | null;
  readonly partitions: ReadonlyMap<
    string,
    { readonly partition: Readonly<Record<string, unknown>>; readonly cursor: string }
  >;
}

export interface StateTracker {
  /** Where this partition's reading begins; null: at the beginning. */
  cursorOf(partition: Readonly<Record<string, unknown>>): string | null;
  /** A slice of the partition was read wholly. */
  done(partition: Readonly<Record<string, unknown>>, cursor: string | null): void;
  /** True when it is time for a checkpoint: after every slice while the state is small, then once a second. */
  due(): boolean;
  snapshot(): ConnectorState;
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
  return { empty: cursor === null && partitions.size === 0, cursor, partitions };
}

/** The same whatever the order of the keys. */
export function keyOf(partition: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(partition, (_key, value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

export function stateTracker(known: KnownState, partitioned: boolean, clock: Clock): StateTracker {
  const partitions = new Map(known.partitions);
  let latest = known.cursor;
  let lastSnapshot = clock.monotonic();
  return {
    cursorOf: (partition) => (partitioned ? (known.partitions.get(keyOf(partition))?.cursor ?? null) : known.cursor),
    done(partition, cursor) {
      if (cursor === null) return;
      if (partitioned) partitions.set(keyOf(partition), { partition, cursor });
      if (!partitioned || latest === null || cursor > latest) latest = cursor;
    },
    due() {
      if (partitions.size > SMALL && clock.monotonic() - lastSnapshot < 1000) return false;
      lastSnapshot = clock.monotonic();
      return true;
    },
    snapshot: () => ({ cursor: latest, ...(partitioned ? { partitions: [...partitions.values()] } : {}) }),
  };
}
