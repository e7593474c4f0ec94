// A decoded page -> records: extracted, filtered, transformed, normalised.
import { type Context, condition, type Slice, sliceVariables, text } from "../context.ts";
import {
  type Component,
  child,
  children,
  isRecord,
  list,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { dpath } from "./dpath.ts";
import { expanderOf } from "./expand.ts";
import { normalise } from "./normalise.ts";
import { type Transform, transformsOf } from "./transform.ts";

export type DataRecord = Record<string, unknown>;

/** A stream's JSON schema; undefined where the manifest has none: every field passes through. */
export type LoadSchema = () => Promise<DataRecord | undefined>;

export interface Selector {
  /** Where the records stand in a value of which they go out as they came; null: not as they came, or not by names alone. */
  readonly plain: readonly string[] | null;
  /** The records of one decoded value, before any filter: pages are counted by these. */
  extract(value: unknown): unknown[];
  /** What remains of them after filter and transformations. */
  select(records: readonly unknown[], slice: Slice, state: unknown): DataRecord[];
}

export function selectorOf(
  context: Context,
  component: Component,
  transformations: readonly Component[],
  schema: () => DataRecord | undefined,
): Selector {
  if (typeOf(component) !== "RecordSelector") return refuseCustom(component);
  const { extract, path } = extractorOf(context, child(component, "extractor"));
  const filter = optionalChild(component, "record_filter");
  if (filter && typeOf(filter) !== "RecordFilter") refuseCustom(filter);
  const transforms = transformsOf(context, transformations);
  const normalization = component["schema_normalization"];
  if (isRecord(normalization)) refuseCustom(normalization);
  const cast = normalization === "Default";
  const changes = cast || transforms.length > 0;
  const transformFirst = component["transform_before_filtering"] === true;
  const keep = (record: DataRecord, slice: Slice, state: unknown): boolean =>
    !filter ||
    filter["condition"] === undefined ||
    filter["condition"] === "" ||
    condition(context, filter, filter["condition"], { record, stream_state: state ?? {}, ...sliceVariables(slice) });
  return {
    plain: filter || changes || !path?.every((part) => /^[A-Za-z_][\w-]*$/.test(part)) ? null : path,
    extract,
    select(records, slice, state) {
      const out: DataRecord[] = [];
      for (const each of records) {
        if (!isRecord(each)) continue;
        const record = changes ? { ...each } : each;
        if (transformFirst) run(transforms, record, slice);
        if (!keep(record, slice, state)) continue;
        if (!transformFirst) run(transforms, record, slice);
        out.push(cast ? (normalise(record, schema()) as DataRecord) : record);
      }
      return out;
    },
  };
}

function run(transforms: readonly Transform[], record: DataRecord, slice: Slice): void {
  for (const transform of transforms) transform(record, slice);
}

export interface Extractor {
  extract(value: unknown): unknown[];
  /** Null: records are made of what stands there. */
  readonly path: readonly string[] | null;
}

export function extractorOf(context: Context, component: Component): Extractor {
  if (typeOf(component) === "CombinedExtractor") return combined(context, component);
  if (typeOf(component) !== "DpathExtractor") return refuseCustom(component);
  const path = list(component["field_path"])
    .map((part) => text(context, component, part))
    .filter((part) => part !== "");
  const expander = optionalChild(component, "record_expander");
  const expand = expander && expanderOf(context, expander);
  const glob = path.some((part) => part.includes("*"));
  // Of lists in a list the records are their members.
  const members = (list: readonly unknown[]): readonly unknown[] => (list.some(Array.isArray) ? list.flat() : list);
  const extract = (value: unknown): unknown[] => {
    // Of an answer that is a list each member is an answer.
    if (Array.isArray(value) && path.length > 0) return value.flatMap(within);
    return within(Array.isArray(value) ? members(value) : value);
  };
  const within = (value: unknown): unknown[] => {
    const places = path.length === 0 ? [value] : dpath(value, path);
    const found = path.length > 0 && (glob || places.length > 1) ? members(places) : places[0];
    const records = Array.isArray(found)
      ? found
      : found !== undefined && found !== null && (!isRecord(found) || Object.keys(found).length)
        ? [found]
        : [];
    return expand ? records.flatMap(expand) : records;
  };
  return { extract, path: expander ? null : path };
}

// What is left out as empty counts for the page all the same: null is no record.
function combined(context: Context, component: Component): Extractor {
  const parts = children(component, "extractors").map((each) => extractorOf(context, each).extract);
  const skips = component["skip_empty_records"] === true;
  const isEmpty = (record: unknown): boolean =>
    record === null || record === "" || (typeof record === "object" && Object.keys(record).length === 0);
  const extracted = (part: Extractor["extract"], value: unknown): unknown[] =>
    part(value).map((record) => (skips && isEmpty(record) ? null : record));
  const some = (records: readonly unknown[]): boolean => records.some((record) => !skips || record !== null);
  return {
    path: null,
    extract: (value) => {
      const all = parts.map((part) => extracted(part, value));
      return optionalText(component, "mode") === "first_match" ? (all.find(some) ?? []) : all.flat();
    },
  };
}

export function transformationsOf(stream: Component): Component[] {
  return children(stream, "transformations");
}
