// Where reading a declarative stream goes on: one cursor, or one a partition. Opaque to whoever keeps it; one that Airbyte kept is read too.
import type { Clock } from "#shared/clock.ts";
import { type Component, child, children, isRecord, optionalChild, typeOf } from "../manifest/component.ts";
import type { Cursor } from "./cursor.ts";
import { makesGroups, routersOf } from "./partition.ts";

type PartitionValues = Readonly<Record<string, unknown>>;

export interface ConnectorState {
  /** The latest cursor of all, as text; null: nothing read yet. */
  readonly cursor: string | null;
  /** Of a stream whose partitions share the cursor: how long the read took. What came meanwhile may be older than the cursor. */
  readonly lookback_s?: number;
  readonly partitions?: readonly { readonly partition: PartitionValues; readonly cursor: string }[];
  /** States of parent streams that are read on from there, by name. */
  readonly parents?: Readonly<Record<string, unknown>>;
}

export interface KnownState {
  readonly empty: boolean;
  readonly cursor: string | null;
  readonly lookbackS: number;
  readonly partitions: ReadonlyMap<string, { readonly partition: PartitionValues; readonly cursor: string }>;
  /** Where partitions begin that have no cursor of their own; null: at the beginning. */
  readonly shared: string | null;
  /** Cursors by the one value that makes a partition, in the form before there were partitions. */
  readonly legacy: ReadonlyMap<string, string>;
  readonly parents: Readonly<Record<string, unknown>>;
}

/** What a state is read for. */
export interface StateForm {
  readonly cursorField: string | undefined;
  /** True: all partitions have one cursor together. */
  readonly together: boolean;
  /** True: `{"<partition>": {"<cursor field>": ...}}` is a state too. */
  readonly legacy: boolean;
}

export function stateFormOf(stream: Component, cursor: Cursor | undefined): StateForm {
  const routers = routersOf(child(stream, "retriever"));
  const wanted = optionalChild(stream, "incremental_sync")?.["global_substream_cursor"] === true;
  const migrations = children(stream, "state_migrations").map(typeOf);
  return {
    cursorField: cursor?.field,
    // Which records stand together in a group changes with every new one: no cursor of a group would be found again.
    together: cursor !== undefined && (makesGroups(routers) || (wanted && routers.length > 0)),
    legacy: migrations.includes("LegacyToPerPartitionStateMigration"),
  };
}

export interface StateTracker {
  /** Where this partition's reading begins; null: at the beginning. */
  cursorOf(partition: PartitionValues): string | null;
  /** A slice of the partition was read wholly. */
  done(partition: PartitionValues, cursor: string | null): void;
  /** Where a parent stream has ended: it counts once all its partitions were read. */
  parentDone(name: string, state: unknown): void;
  /** True when it is time for a checkpoint: after every slice while the state is small and says something new, else once a second. */
  due(): boolean;
  /** `whole`: everything was read. */
  snapshot(whole?: boolean): ConnectorState;
}

const SMALL = 100;
/** Partitions that there are no more are kept as long as there are no more than this: they may come back. */
const MOST_KEPT = 10_000;

/** What was kept, leniently: anything else counts as no state. */
export function readState(value: unknown, form: StateForm): KnownState {
  const state = isRecord(value) ? value : {};
  const foreign = foreignState(state, form);
  const partitions = new Map<string, { partition: PartitionValues; cursor: string }>();
  for (const each of Array.isArray(state["partitions"]) ? state["partitions"] : (foreign.partitions ?? []))
    if (isRecord(each) && isRecord(each["partition"]) && typeof each["cursor"] === "string")
      partitions.set(keyOf(each["partition"]), { partition: each["partition"], cursor: each["cursor"] });
  const own = typeof state["cursor"] === "string" ? state["cursor"] : null;
  const cursor = own ?? foreign.cursor ?? null;
  const legacy = foreign.legacy ?? new Map<string, string>();
  const lookback = Number(state["lookback_s"] ?? state["lookback_window"]) || 0;
  return {
    empty: cursor === null && partitions.size === 0 && legacy.size === 0,
    cursor,
    lookbackS: Math.max(lookback, 0),
    partitions,
    // Of partitions that had each their own, one without was not read yet.
    shared: (form.together && partitions.size === 0) || (own === null && foreign.shared === true) ? cursor : null,
    legacy,
    parents: [state["parents"], state["parent_state"]].find(isRecord) ?? {},
  };
}

interface ForeignState {
  readonly cursor?: string | null;
  readonly shared?: boolean;
  readonly partitions?: readonly { readonly partition: unknown; readonly cursor: unknown }[];
  readonly legacy?: ReadonlyMap<string, string>;
}

// The forms of Airbyte's states: one cursor, ranges that were read, one cursor a partition, one for all.
function foreignState(state: Readonly<Record<string, unknown>>, { cursorField, legacy }: StateForm): ForeignState {
  if (cursorField === undefined) return {};
  const valueIn = (value: unknown): string | null => textOf(isRecord(value) ? value[cursorField] : null);
  const { states, slices, state: global } = state;
  if (Array.isArray(states) || isRecord(global)) {
    const partitions = (Array.isArray(states) ? states : []).filter(isRecord).map((each) => ({
      partition: each["partition"],
      cursor: valueIn(each["cursor"]),
    }));
    return { cursor: valueIn(global), shared: state["use_global_cursor"] === true || !partitions.length, partitions };
  }
  if (Array.isArray(slices)) {
    const [first] = slices.filter(isRecord);
    return { cursor: textOf(first?.["most_recent_cursor_value"] ?? first?.["end"]) };
  }
  const entries = Object.entries(state);
  if (Object.hasOwn(state, cursorField)) return { cursor: valueIn(state), shared: true };
  if (!legacy || !entries.every(([, each]) => isRecord(each) && Object.keys(each).join() === cursorField)) return {};
  return { legacy: new Map(entries.map(([key, each]) => [key, valueIn(each) ?? ""])) };
}

const textOf = (value: unknown): string | null =>
  typeof value === "string" || typeof value === "number" ? String(value) : null;

/** The same whatever the order of the keys. */
export function keyOf(partition: PartitionValues): string {
  return JSON.stringify(partition, (_key, value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

export interface TrackedStream {
  readonly partitioned: boolean;
  /** As in `StateForm`. */
  readonly together: boolean;
  readonly cursor: Cursor | undefined;
  /** Whether every partition that there is was read, asked at the end. */
  allSeen(): boolean;
}

export function stateTracker(
  known: KnownState,
  { partitioned, together, cursor, allSeen }: TrackedStream,
  clock: Clock,
): StateTracker {
  const partitions = new Map(known.partitions);
  const seen = new Set<string>();
  const shared = known.shared !== null && cursor ? cursor.before(known.shared, known.lookbackS) : null;
  // The latest cursor of partitions says nothing of the others: a stream that has none any more is read from its beginning.
  let latest = !partitioned && known.partitions.size > 0 ? null : known.cursor;
  const begun = clock.monotonic();
  let lastSnapshot = begun;
  const parents = new Map(Object.entries(known.parents));
  return {
    cursorOf(partition) {
      if (!partitioned) return latest;
      const key = keyOf(partition);
      if (partitions.size > 0) seen.add(key);
      return known.partitions.get(key)?.cursor ?? known.legacy.get(soleValue(partition)) ?? shared;
    },
    done(partition, value) {
      if (value === null) return;
      if (partitioned && !together) partitions.set(keyOf(partition), { partition, cursor: value });
      latest = !partitioned || latest === null || !cursor ? value : cursor.later(latest, value);
    },
    parentDone: (name, state) => void parents.set(name, state),
    due() {
      if ((together || partitions.size > SMALL) && clock.monotonic() - lastSnapshot < 1000) return false;
      lastSnapshot = clock.monotonic();
      return true;
    },
    snapshot(whole = false) {
      const states = whole ? Object.fromEntries(parents) : known.parents;
      if (whole && partitions.size > MOST_KEPT && allSeen())
        for (const key of partitions.keys()) if (known.partitions.has(key) && !seen.has(key)) partitions.delete(key);
      const took = Math.ceil((clock.monotonic() - begun) / 1000);
      return {
        // One cursor for all says nothing before all were read.
        cursor: together && !whole ? known.cursor : latest,
        ...(together ? { lookback_s: whole ? took : known.lookbackS } : {}),
        ...(partitioned && !(together && (whole || partitions.size === 0))
          ? { partitions: [...partitions.values()] }
          : {}),
        ...(Object.keys(states).length ? { parents: states } : {}),
      };
    },
  };
}

// Beside a parent's slice: what alone makes the partition.
function soleValue({ parent_slice: _parent, ...own }: PartitionValues): string {
  return Object.values(own).map(String).join();
}
