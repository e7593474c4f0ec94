// A list within a record -> records, with what the manifest takes over from the record around it.
import { type Context, text } from "../context.ts";
import {
  type Component,
  children,
  isRecord,
  list,
  manifestError,
  optionalText,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { copyOf, dpath, dpathOne, removeAt, setAt } from "./dpath.ts";

/** A RecordExpander. Members that are no objects are records of one field, `value`, where the manifest adds others to it. */
export function expanderOf(context: Context, component: Component): (record: unknown) => unknown[] {
  if (typeOf(component) !== "RecordExpander") refuseCustom(component);
  if (component["truncated_list_retriever"])
    throw manifestError("RecordExpander.truncated_list_retriever is not supported here");
  const pathOf = (value: unknown): string[] => list(value).map((part) => text(context, component, part));
  const path = pathOf(component["expand_records_from_field"]);
  const indicator = pathOf(component["truncation_indicator_path"]);
  const fields = children(component, "parent_fields").map(
    ({ parent_path, record_path }) => [pathOf(parent_path), pathOf(record_path)] as const,
  );
  const emits = optionalText(component, "on_no_records") === "emit_parent";
  const keeps = component["remain_original_record"] === true;
  const merges = component["merge_parent"] === true;
  const adds = keeps || merges || fields.length > 0;
  let told = false;
  const tell = (record: unknown, shown: number): void => {
    if (told || indicator.length === 0 || !dpathOne(record, indicator)) return;
    told = true;
    context.log("warn", `of the list at ${path.join(".")} the vendor shows ${shown}, and says that there are more`);
  };
  return (record) => {
    const members = dpath(record, path).flatMap((each) => (Array.isArray(each) ? each : []));
    tell(record, members.length);
    if (members.length === 0) return emits ? [record] : [];
    if (!adds) return members.filter(isRecord);
    // Copied with its list once, not for each member of the list.
    const parent = merges ? copyOf(record as Record<string, unknown>) : {};
    if (merges) removeAt(parent, path);
    return members.map((each: unknown) => {
      const expanded: Record<string, unknown> = { ...copyOf(parent), ...(isRecord(each) ? each : { value: each }) };
      for (const [from, to] of fields) setAt(expanded, to, copyOf(dpathOne(record, from) ?? null));
      return keeps ? { ...expanded, original_record: record } : expanded;
    });
  };
}
