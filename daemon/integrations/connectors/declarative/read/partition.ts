// The partitions of a stream: none, the values of a list, the records of a parent stream, or combinations. They come one by one: a parent
// may have millions of records.
import { type Context, native, text } from "../context.ts";
import { emptyParts, inject, merge, type RequestParts } from "../http/options.ts";
import {
  type Component,
  child,
  children,
  list,
  manifestError,
  optionalChild,
  refuseCustom,
  requiredText,
  typeOf,
} from "../manifest/component.ts";
import { dpathOne } from "./dpath.ts";
import type { DataRecord } from "./records.ts";

export interface Partition {
  readonly values: Readonly<Record<string, unknown>>;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly parts: RequestParts;
  /** The first answer for this partition, where it stands in the parent's record. */
  readonly embedded?: { readonly answer: unknown };
}

/** All records of a parent stream, with the partition each was read in. `dependent`: only what is new since the last read. */
export type ReadParent = (
  stream: Component,
  dependent: boolean,
) => AsyncIterable<{ readonly record: DataRecord; readonly partition: Readonly<Record<string, unknown>> }>;

export type Partitions = (readParent: ReadParent) => AsyncIterable<Partition>;

const MAX_PARTITIONS = 5_000_000;

const whole: Partition = { values: {}, extra: {}, parts: emptyParts() };

/** A retriever's routers: where there is one its stream's state is kept by partition. */
export function routersOf(retriever: Component): Component[] {
  return children(retriever, "partition_router");
}

export function partitionsOf(context: Context, routers: readonly Component[]): Partitions {
  if (!routers.length)
    return async function* () {
      yield whole;
    };
  return bounded(routers.map((each) => routerOf(context, each)).reduce(product));
}

/** True where partitions are groups of others. */
export function makesGroups(routers: readonly Component[]): boolean {
  return routers.some((router) => typeOf(router) === "GroupingPartitionRouter");
}

/** True where one parent may be read more than once: for each partition of a router before it, or as the parent of two. */
export function readsAgain(routers: readonly Component[]): boolean {
  const parents = parentsOf(routers);
  return parents.length > 1 || (parents.length > 0 && routers.length > 1);
}

/** The parent streams that the routers read, not those of the parents. */
export function parentsOf(routers: readonly Component[]): Component[] {
  return routers.flatMap((router) => [
    ...children(router, "parent_stream_configs").flatMap((parent) => children(parent, "stream")),
    ...parentsOf(children(router, "underlying_partition_router")),
    ...parentsOf(children(router, "partition_routers")),
  ]);
}

function product(left: Partitions, right: Partitions): Partitions {
  return async function* (readParent) {
    for await (const a of left(readParent))
      for await (const b of right(readParent))
        yield {
          // Of what both name the first one's counts, as in the reference: its states are read on from.
          values: { ...b.values, ...a.values },
          extra: { ...b.extra, ...a.extra },
          parts: merge(b.parts, a.parts),
        };
  };
}

function routerOf(context: Context, component: Component): Partitions {
  const type = typeOf(component);
  if (type === "ListPartitionRouter") return listRouter(context, component);
  if (type === "SubstreamPartitionRouter") return substreamRouter(context, component);
  if (type === "GroupingPartitionRouter")
    return groupingRouter(component, routerOf(context, child(component, "underlying_partition_router")));
  if (type === "UnionPartitionRouter") return unionRouter(context, component);
  return refuseCustom(component);
}

function bounded(partitions: Partitions): Partitions {
  return async function* (readParent) {
    let count = 0;
    for await (const partition of partitions(readParent)) {
      if (++count > MAX_PARTITIONS) throw manifestError(`a stream has more than ${MAX_PARTITIONS} partitions`);
      yield partition;
    }
  };
}

function listRouter(context: Context, component: Component): Partitions {
  const field = text(context, component, requiredText(component, "cursor_field"));
  const option = optionalChild(component, "request_option");
  return async function* () {
    const made = typeof component["values"] === "string";
    const values = made ? native(context, component, component["values"]) : component["values"];
    // What the configuration lacks comes to no text: there is nothing to ask for.
    for (const each of made && values === "" ? [] : list(values)) {
      // What is written in a list is meant as it is written: "1e5" and "007" are names.
      const isTemplate = !made && typeof each === "string" && each.includes("{{");
      const value = isTemplate ? native(context, component, each) : each;
      const parts = emptyParts();
      if (option && value !== "") inject(context, option, value, parts);
      yield { values: { [field]: value }, extra: {}, parts };
    }
  };
}

function substreamRouter(context: Context, component: Component): Partitions {
  const parents = children(component, "parent_stream_configs");
  if (!parents.length) throw manifestError("SubstreamPartitionRouter.parent_stream_configs is empty");
  return async function* (readParent) {
    for (const parent of parents) {
      const key = text(context, parent, requiredText(parent, "parent_key"));
      const field = text(context, parent, requiredText(parent, "partition_field"));
      const option = optionalChild(parent, "request_option");
      const extraFields = list(parent["extra_fields"]).map((path) =>
        list(path).map((part) => text(context, parent, part)),
      );
      // Children whose first page stands in the parent's record itself.
      const pointer = list(parent["lazy_read_pointer"]).map((part) => text(context, parent, part));
      for await (const { record, partition } of readParent(
        child(parent, "stream"),
        parent["incremental_dependency"] === true,
      )) {
        const value = valueAt(record, key);
        if (value === undefined || value === null) continue;
        const parts = emptyParts();
        if (option && value !== "") inject(context, option, value, parts);
        const extra = Object.fromEntries(extraFields.map((path) => [path.join("."), dpathOne(record, path) ?? null]));
        const embedded = pointer.length ? { embedded: { answer: dpathOne(record, pointer) ?? [] } } : {};
        yield { values: { [field]: value, parent_slice: partition }, extra, parts, ...embedded };
      }
    }
  };
}

function valueAt(record: DataRecord, key: string): unknown {
  if (Object.hasOwn(record, key)) return record[key];
  return dpathOne(record, key.split("/")) ?? dpathOne(record, key.split("."));
}

function groupingRouter(component: Component, inner: Partitions): Partitions {
  const size = Math.max(1, Number(component["group_size"]));
  const unique = component["deduplicate"] !== false;
  return async function* (readParent) {
    let group: Partition[] = [];
    const seen = new Set<string>();
    const combine = (): Partition => {
      const values: Record<string, unknown> = {};
      for (const key of Object.keys(group[0]?.values ?? {})) values[key] = group.map((each) => each.values[key]);
      const extra: Record<string, unknown> = {};
      for (const key of group.flatMap((each) => Object.keys(each.extra)))
        extra[key] = group.map((each) => each.extra[key] ?? null);
      return { values, extra, parts: emptyParts() };
    };
    for await (const partition of inner(readParent)) {
      const { parent_slice: _parent, ...own } = partition.values;
      const key = JSON.stringify(own);
      if (unique && seen.has(key)) continue;
      seen.add(key);
      group.push(partition);
      if (group.length < size) continue;
      yield combine();
      group = [];
    }
    if (group.length) yield combine();
  };
}

// Whatever a router gives beside the one field, such as a parent's slice, is extra: the same value is the same partition.
function unionRouter(context: Context, component: Component): Partitions {
  const field = text(context, component, requiredText(component, "partition_field"));
  const routers = children(component, "partition_routers").map((each) => routerOf(context, each));
  return async function* (readParent) {
    const seen = new Set<string>();
    for (const router of routers) {
      for await (const partition of router(readParent)) {
        const { [field]: value, ...rest } = partition.values;
        const key = JSON.stringify(value);
        if (!seen.has(key)) yield { ...partition, values: { [field]: value }, extra: { ...partition.extra, ...rest } };
        seen.add(key);
      }
    }
  };
}
