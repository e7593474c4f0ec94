// The partitions of a stream: none, the values of a list, the records of a parent stream, or combinations. They come one by one: a parent
// may have millions of records.
import { type Context, native, text } from "../context.ts";
import { emptyParts, inject, merge, type RequestParts } from "../http/options.ts";
import {
  type Component,
  child,
  children,
  isRecord,
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
}

export type Partitions = () => AsyncIterable<Partition>;

/** All records of a parent stream, with the partition each was read in. */
export type ReadParent = (
  stream: Component,
) => AsyncIterable<{ readonly record: DataRecord; readonly partition: Readonly<Record<string, unknown>> }>;

const MAX_PARTITIONS = 5_000_000;

const whole: Partition = { values: {}, extra: {}, parts: emptyParts() };

export function partitionsOf(context: Context, component: unknown, readParent: ReadParent): Partitions {
  const routers = list(component)
    .filter(isRecord)
    .map((each) => routerOf(context, each, readParent));
  if (!routers.length)
    return async function* () {
      yield whole;
    };
  return routers.reduce(product);
}

/** True where the stream has a router at all: its state is then kept by partition. */
export function isPartitioned(component: unknown): boolean {
  return list(component).some(isRecord);
}

function product(left: Partitions, right: Partitions): Partitions {
  return async function* () {
    for await (const a of left())
      for await (const b of right())
        yield {
          values: { ...a.values, ...b.values },
          extra: { ...a.extra, ...b.extra },
          parts: merge(a.parts, b.parts),
        };
  };
}

function routerOf(context: Context, component: Component, readParent: ReadParent): Partitions {
  const type = typeOf(component);
  if (type === "ListPartitionRouter") return listRouter(context, component);
  if (type === "SubstreamPartitionRouter") return bounded(substreamRouter(context, component, readParent));
  if (type === "GroupingPartitionRouter")
    return groupingRouter(component, routerOf(context, child(component, "underlying_partition_router"), readParent));
  if (type === "UnionPartitionRouter") return unionRouter(context, component, readParent);
  return refuseCustom(component);
}

function bounded(partitions: Partitions): Partitions {
  return async function* () {
    let count = 0;
    for await (const partition of partitions()) {
      if (++count > MAX_PARTITIONS) throw manifestError(`a stream has more than ${MAX_PARTITIONS} partitions`);
      yield partition;
    }
  };
}

function listRouter(context: Context, component: Component): Partitions {
  const field = text(context, component, requiredText(component, "cursor_field"));
  const option = optionalChild(component, "request_option");
  return async function* () {
    const values =
      typeof component["values"] === "string" ? native(context, component, component["values"]) : component["values"];
    for (const each of list(values)) {
      const value = typeof component["values"] === "string" ? each : native(context, component, each);
      const parts = emptyParts();
      if (option) inject(context, option, value, parts);
      yield { values: { [field]: value }, extra: {}, parts };
    }
  };
}

function substreamRouter(context: Context, component: Component, readParent: ReadParent): Partitions {
  const parents = children(component, "parent_stream_configs");
  if (!parents.length) throw manifestError("SubstreamPartitionRouter.parent_stream_configs is empty");
  return async function* () {
    for (const parent of parents) {
      const key = text(context, parent, requiredText(parent, "parent_key"));
      const field = text(context, parent, requiredText(parent, "partition_field"));
      const option = optionalChild(parent, "request_option");
      const extraFields = list(parent["extra_fields"]).map((path) =>
        list(path).map((part) => text(context, parent, part)),
      );
      for await (const { record, partition } of readParent(child(parent, "stream"))) {
        for (const value of parentValues(record, key, parent)) {
          const parts = emptyParts();
          if (option) inject(context, option, value, parts);
          const extra = Object.fromEntries(extraFields.map((path) => [path.join("."), dpathOne(record, path) ?? null]));
          yield { values: { [field]: value, parent_slice: partition }, extra, parts };
        }
      }
    }
  };
}

// `lazy_read_pointer` names children that stand in the parent's record itself: their keys are the partitions.
function parentValues(record: DataRecord, key: string, parent: Component): unknown[] {
  const pointer = list(parent["lazy_read_pointer"]).map(String);
  const sources = pointer.length ? list(dpathOne(record, pointer)) : [record];
  return sources
    .map((source) => (isRecord(source) ? valueAt(source, key) : undefined))
    .filter((value) => value !== undefined && value !== null);
}

function valueAt(record: DataRecord, key: string): unknown {
  if (Object.hasOwn(record, key)) return record[key];
  return dpathOne(record, key.split("/")) ?? dpathOne(record, key.split("."));
}

function groupingRouter(component: Component, inner: Partitions): Partitions {
  const size = Math.max(1, Number(component["group_size"]));
  const unique = component["deduplicate"] !== false;
  return async function* () {
    let group: Partition[] = [];
    const seen = new Set<string>();
    const combine = (): Partition => {
      const values: Record<string, unknown> = {};
      for (const key of Object.keys(group[0]?.values ?? {})) values[key] = group.map((each) => each.values[key]);
      return { values, extra: {}, parts: emptyParts() };
    };
    for await (const partition of inner()) {
      const key = JSON.stringify(partition.values);
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

function unionRouter(context: Context, component: Component, readParent: ReadParent): Partitions {
  const field = requiredText(component, "partition_field");
  const routers = children(component, "partition_routers").map((each) => routerOf(context, each, readParent));
  return async function* () {
    const seen = new Set<string>();
    for (const router of routers) {
      for await (const partition of router()) {
        const key = JSON.stringify(partition.values[field]);
        if (!seen.has(key)) yield partition;
        seen.add(key);
      }
    }
  };
}
