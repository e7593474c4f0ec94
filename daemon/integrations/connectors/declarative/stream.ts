// A stream of a manifest: its records, page by page, with the state after each slice.
import { MagicError } from "#contract/errors.ts";
import { type Context, condition } from "./context.ts";
import { createAnswers } from "./http/answers.ts";
import { type Component, child, optionalChild, refuseCustom, requiredText, typeOf } from "./manifest/component.ts";
import { keyPathsOf, nameOf, writtenStreams } from "./manifest/streams.ts";
import { readsWhole } from "./read/delegate.ts";
import { failedPartitions } from "./read/failed-partitions.ts";
import { cursorOf } from "./read/incremental-sync.ts";
import type { Pack } from "./read/pack.ts";
import { parallel } from "./read/parallel.ts";
import { type Partition, parentsOf, partitionsOf, type ReadParent, readsAgain, routersOf } from "./read/partition.ts";
import { type PackedEvent, partitionReaderOf, type RecordsEvent } from "./read/partition-reader.ts";
import { type DataRecord, selectorOf, transformationsOf } from "./read/records.ts";
import { retrieverOf } from "./read/retrieve.ts";
import { schemaOf } from "./read/schema.ts";
import { type ConnectorState, keyOf, readState, stateFormOf, stateTracker } from "./read/state.ts";
import { halvesOf } from "./read/window.ts";

export type StreamEvent = RecordsEvent | { readonly type: "state"; readonly state: ConnectorState };

export interface Stream {
  readonly name: string;
  /** Paths of the key's fields; empty: none. */
  readonly primaryKey: readonly (readonly string[])[];
  readonly cursorField: string | undefined;
  schema(): Promise<DataRecord | undefined>;
  /** Reads from the state on (undefined: everything). */
  read(state?: unknown): AsyncIterable<StreamEvent>;
  /** The same, with pages packed where they can be. */
  readPacked(state: unknown, pack: Pack): AsyncIterable<StreamEvent | PackedEvent>;
}

/** More at once only where the manifest or the caller says so: vendors limit more often than they wait. */
const DEFAULT_CONCURRENCY = 4;

export function streamOf(context: Context, component: Component, concurrency = DEFAULT_CONCURRENCY): Stream {
  if (typeOf(component) === "StateDelegatingStream") return delegating(context, component, concurrency);
  const retriever = child(component, "retriever");
  if (!["SimpleRetriever", "AsyncRetriever"].includes(typeOf(retriever))) refuseCustom(retriever);
  const sync = optionalChild(component, "incremental_sync");
  const cursor = cursorOf(context, sync, retriever);
  const halves = halvesOf(retriever, sync, cursor);
  let schema: Promise<DataRecord | undefined> | undefined;
  let loaded: DataRecord | undefined;
  const load = schemaOf(context, component);
  const loadSchema = (): Promise<DataRecord | undefined> => {
    schema ??= load().then((value) => {
      loaded = value;
      return value;
    });
    return schema;
  };
  const selector = selectorOf(context, child(retriever, "record_selector"), transformationsOf(component), () => loaded);
  const readPartition = partitionReaderOf(retrieverOf(context, retriever, selector, loadSchema), cursor, halves);
  const routers = routersOf(retriever);
  const partitions = partitionsOf(context, routers);
  // Built with the stream: what cannot run is known before anything is read.
  const below = readsAgain(routers) ? { answers: createAnswers(), ...context } : context;
  const parents = new Map(parentsOf(routers).map((each) => [each, streamOf(below, each, 1)] as const));
  if (component["file_uploader"])
    context.log("warn", `the files that records of ${nameOf(component)} name are not fetched: the records are`);
  const partitioned = routers.length > 0;
  const form = stateFormOf(component, cursor);
  return {
    name: nameOf(component),
    primaryKey: keyPathsOf(component),
    cursorField: cursor?.field,
    schema: loadSchema,
    // Without `pack` none is packed.
    read: (given) => events(given) as AsyncIterable<StreamEvent>,
    readPacked: events,
  };

  async function* events(given: unknown, pack?: Pack): AsyncGenerator<StreamEvent | PackedEvent> {
    await loadSchema();
    const known = readState(given, form);
    let allSeen = true;
    const { together } = form;
    const tracker = stateTracker(known, { partitioned, together, cursor, allSeen: () => allSeen }, context.clock);
    const begun = new Set<string>();
    // A state from before parents had theirs: where all children began together, what has changed since then has a parent that did.
    const before = known.shared !== null && cursor ? cursor.before(known.shared, known.lookbackS) : undefined;
    const parentState = ({ name, cursorField = "" }: Stream): unknown =>
      known.parents[name] ?? (before && { [cursorField]: before });
    // Without a cursor of its own the stream is read wholly each time: so are its parents then.
    const readParent: ReadParent = async function* (component, dependent) {
      const parent = parents.get(component) ?? streamOf(below, component, 1);
      const readsOn = dependent && cursor !== undefined && parent.cursorField !== undefined;
      if (readsOn) allSeen = false;
      // Read again in this run, it has come further than the children that were read first.
      const first = !begun.has(parent.name);
      begun.add(parent.name);
      for await (const event of parent.read(readsOn ? parentState(parent) : undefined)) {
        if (event.type === "state") {
          if (readsOn && first) tracker.parentDone(parent.name, event.state);
        } else for (const record of event.records) yield { record, partition: event.partition };
      }
    };
    const tasks = cursor && partitioned ? distinct(partitions(readParent)) : partitions(readParent);
    const failed = failedPartitions(context);
    const readEach = (each: Partition) => {
      const read = readPartition(each, tracker, pack);
      return partitioned ? failed.read(read) : read;
    };
    try {
      for await (const event of parallel(tasks, partitioned ? concurrency : 1, readEach))
        if (event.type !== "slice") yield event;
        else if (tracker.due()) yield { type: "state", state: tracker.snapshot() };
      failed.end();
    } catch (error) {
      // What the other partitions' jobs make nobody will read: they must not stay with the vendor.
      await context.jobs.abandon(error);
      if (overflowed(error))
        throw new MagicError("upstream_error", `an answer for ${nameOf(component)} nests too deeply to be read`);
      throw error;
    }
    yield { type: "state", state: tracker.snapshot(true) };
  }
}

// Two parent records with one key are one partition: its cursor says where both were read to.
async function* distinct(partitions: AsyncIterable<Partition>): AsyncGenerator<Partition> {
  const seen = new Set<string>();
  for await (const partition of partitions) {
    const key = keyOf(partition.values);
    if (!seen.has(key)) yield partition;
    seen.add(key);
  }
}

// Without state the whole is read one way, with it what has changed another.
function delegating(context: Context, component: Component, concurrency: number): Stream {
  const [full, changes] = ["full_refresh_stream", "incremental_stream"].map((field) =>
    streamOf(context, { $parameters: component["$parameters"] ?? {}, ...child(component, field) }, concurrency),
  ) as [Stream, Stream];
  const whole = readsWhole(context, component);
  return {
    ...changes,
    name: requiredText(component, "name"),
    read: (given) => (whole(given) ? full.read() : changes.read(given)),
    readPacked: (given, pack) => (whole(given) ? full.readPacked(undefined, pack) : changes.readPacked(given, pack)),
  };
}

/** The streams of a resolved manifest, conditional ones where their condition holds. */
export function streamComponents(context: Context, manifest: Component): Component[] {
  return writtenStreams(manifest, (group) => condition(context, group, group["condition"]));
}

/** Whatever looks into an answer does so level by level: one of too many levels ends like this. */
export function overflowed(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes("call stack");
}
