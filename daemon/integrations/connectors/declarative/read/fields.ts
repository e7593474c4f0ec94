// Fields of records and request bodies by their plain names (dpath.ts reads patterns): only own members count.
import { setField } from "#contract/json-object.ts";
import { isRecord } from "../manifest/component.ts";

/** The member at the path; undefined where it leads nowhere. */
export function fieldAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), value);
}

/** The field of that name, else the one that the name leads to by its dots. */
export function fieldOf(record: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(record, name)) return record[name];
  return name.includes(".") ? fieldAt(record, name.split(".")) : undefined;
}

/** The source's fields win; objects that both hold merge, in copies. */
export function mergeFields(target: Record<string, unknown>, source: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(source)) {
    const held = Object.hasOwn(target, name) ? target[name] : undefined;
    let merged = value;
    if (isRecord(held) && isRecord(value)) {
      merged = { ...held };
      mergeFields(merged as Record<string, unknown>, value);
    }
    setField(target, name, merged);
  }
}
