// The transformations of records, each changing the record in place.
import { type Context, condition, native, type Slice, sliceVariables, text } from "../context.ts";
import {
  type Component,
  children,
  isRecord,
  list,
  optionalChild,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { dpath, removeAt, setAt } from "./dpath.ts";

export type Transform = (record: Record<string, unknown>, slice: Slice) => void;

type Build = (context: Context, component: Component) => Transform;

const builders: Readonly<Record<string, Build>> = {
  AddFields: addFields,
  RemoveFields: removeFields,
  KeysToLower: () => (record) => rename(record, (key) => key.toLowerCase()),
  KeysToSnakeCase: () => (record) => renameDeep(record, snakeCase),
  KeysReplace: (context, component) => (record, slice) => {
    const old = text(context, component, component["old"], { record, ...sliceVariables(slice) });
    const replacement = text(context, component, component["new"], { record, ...sliceVariables(slice) });
    if (old) renameDeep(record, (key) => key.replaceAll(old, () => replacement));
  },
  FlattenFields: (_context, component) => (record) => {
    const flat = flatten(record, component["flatten_lists"] !== false);
    for (const key of Object.keys(record)) delete record[key];
    for (const [key, value] of Object.entries(flat)) setAt(record, [key], value);
  },
  DpathFlattenFields: flattenAt,
};

export function transformsOf(context: Context, components: readonly Component[]): Transform[] {
  return components.map((component) => {
    const build = Object.hasOwn(builders, typeOf(component)) ? builders[typeOf(component)] : undefined;
    return build ? build(context, component) : refuseCustom(component);
  });
}

const casts: Readonly<Record<string, (value: unknown) => unknown>> = {
  string: (value) =>
    typeof value === "string" ? value : isRecord(value) || Array.isArray(value) ? JSON.stringify(value) : String(value),
  integer: (value) => Math.trunc(Number(value)),
  number: (value) => Number(value),
  boolean: (value) => value === true || value === "true" || value === "True" || value === 1,
};

function addFields(context: Context, component: Component): Transform {
  const fields = children(component, "fields");
  return (record, slice) => {
    for (const field of fields) {
      const variables = { record, ...sliceVariables(slice) };
      const value = native(
        context,
        { $parameters: component["$parameters"] ?? {}, ...field },
        field["value"],
        variables,
      );
      if (
        component["condition"] !== undefined &&
        component["condition"] !== "" &&
        !condition(context, component, component["condition"], { ...variables, value, path: field["path"] })
      )
        continue;
      const kind = String(field["value_type"] ?? "");
      const cast = Object.hasOwn(casts, kind) ? casts[kind] : undefined;
      const raw =
        kind === "string"
          ? text(context, { $parameters: component["$parameters"] ?? {}, ...field }, field["value"], variables)
          : value;
      setAt(
        record,
        list(field["path"]).map((part) => text(context, component, part, variables)),
        cast && raw !== null && raw !== "" ? cast(raw) : raw,
      );
    }
  };
}

function removeFields(context: Context, component: Component): Transform {
  const pointers = list(component["field_pointers"]).map((pointer) => list(pointer).map(String));
  const test = component["condition"];
  return (record, slice) => {
    const keep =
      test === undefined || test === ""
        ? undefined
        : (property: unknown): boolean =>
            !condition(context, component, test, { property, record, ...sliceVariables(slice) });
    for (const pointer of pointers) removeAt(record, pointer, keep);
  };
}

function rename(record: Record<string, unknown>, to: (key: string) => string): void {
  const entries = Object.entries(record);
  for (const [key] of entries) delete record[key];
  for (const [key, value] of entries) setAt(record, [to(key)], value);
}

function renameDeep(value: unknown, to: (key: string) => string): void {
  if (Array.isArray(value)) for (const each of value) renameDeep(each, to);
  if (!isRecord(value)) return;
  rename(value, to);
  for (const each of Object.values(value)) renameDeep(each, to);
}

// Words begin at capitals and digits; anything that is no letter or digit separates them.
function snakeCase(key: string): string {
  const words =
    key
      .normalize("NFKD")
      .replace(/[\u0300-\u036f]/g, "")
      .match(/\d*[A-Z]*[a-z]*|[A-Z]*[a-z]*\d*/g)
      ?.filter(Boolean) ?? [];
  const split = words.flatMap((word) => word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g) ?? [word]);
  return split.map((word) => word.toLowerCase()).join("_") || key;
}

function flatten(record: Record<string, unknown>, lists: boolean): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const visit = (value: unknown, key: string, parent: string): void => {
    const nestedKey = parent && Object.hasOwn(out, key) ? `${parent}.${key}` : key;
    if (isRecord(value) && Object.keys(value).length)
      for (const [inner, each] of Object.entries(value))
        visit(each, inner, key ? (parent ? `${parent}.${key}` : key) : "");
    else if (lists && Array.isArray(value) && value.length && value.every((each) => isRecord(each)))
      for (const [at, each] of value.entries()) visit(each, `${key}.${at}`, parent);
    else setAt(out, [nestedKey], value);
  };
  for (const [key, value] of Object.entries(record)) visit(value, key, "");
  return out;
}

function flattenAt(context: Context, component: Component): Transform {
  const path = list(component["field_path"]).map((part) => text(context, component, part));
  const rule = optionalChild(component, "key_transformation");
  return (record) => {
    for (const value of dpath(record, path)) {
      if (!isRecord(value)) continue;
      const entries = Object.entries(value).map(
        ([key, each]) =>
          [
            rule
              ? `${text(context, rule, rule["prefix"] ?? "")}${key}${text(context, rule, rule["suffix"] ?? "")}`
              : key,
            each,
          ] as const,
      );
      if (component["replace_record"] === true) for (const key of Object.keys(record)) delete record[key];
      else if (component["delete_origin_value"] === true) removeAt(record, path);
      for (const [key, each] of entries) setAt(record, [key], each);
    }
  };
}
