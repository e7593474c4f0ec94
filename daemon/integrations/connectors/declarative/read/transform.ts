// The transformations of records, each changing the record in place.
import {
  type Context,
  condition,
  native,
  type Slice,
  sliceVariables,
  type Templates,
  text,
  type Variables,
} from "../context.ts";
import {
  type Component,
  children,
  isRecord,
  list,
  optionalChild,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { dpathOne, removeAt, setAt } from "./dpath.ts";

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

// What a template gives that is not of the type stays the text that it wrote, as in the reference: nothing is rounded, nothing is lost.
const fits: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: () => false,
  integer: (value) => Number.isInteger(value) || typeof value === "boolean",
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
};

/** What a field is to be; `known`: its template's value, where it was evaluated already. */
export function fieldValue(
  templates: Templates,
  component: Component,
  field: Component,
  variables: Variables = {},
  known: { readonly value: unknown } | null = null,
): unknown {
  const kind = String(field["value_type"] ?? "");
  const fit = Object.hasOwn(fits, kind) ? fits[kind] : undefined;
  const value =
    kind === "string" ? undefined : (known ?? { value: native(templates, component, field["value"], variables) }).value;
  return fit && !fit(value) ? text(templates, component, field["value"], variables) : value;
}

function addFields(context: Context, component: Component): Transform {
  const fields = children(component, "fields");
  const test = component["condition"];
  const conditional = test !== undefined && test !== "";
  // A condition may say for which records there is a value at all: only one that looks at it needs it first.
  const looked = typeof test === "string" && test.includes("value");
  return (record, slice) => {
    for (const field of fields) {
      const variables = { record, ...sliceVariables(slice) };
      const parameters = { $parameters: component["$parameters"] ?? {}, ...field };
      const evaluated = (): unknown => native(context, parameters, field["value"], variables);
      const early = looked ? { value: evaluated() } : null;
      if (conditional && !condition(context, component, test, { ...variables, ...early, path: field["path"] }))
        continue;
      setAt(
        record,
        list(field["path"]).map((part) => text(context, component, part, variables)),
        fieldValue(context, parameters, field, variables, early),
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
            // Of objects and lists a condition says nothing, as in the reference: empty ones stay.
            isRecord(property) ||
            Array.isArray(property) ||
            !condition(context, component, test, { property, record, ...sliceVariables(slice) });
    for (const pointer of pointers) removeAt(record, pointer, keep);
  };
}

function rename(record: Record<string, unknown>, to: (key: string) => string): void {
  const entries = Object.entries(record);
  for (const [key] of entries) delete record[key];
  for (const [key, value] of entries) setAt(record, [to(key)], value);
}

// Lists stay as they are, as in the reference.
function renameDeep(value: Record<string, unknown>, to: (key: string) => string): void {
  rename(value, to);
  for (const each of Object.values(value)) if (isRecord(each)) renameDeep(each, to);
}

const ascii: Readonly<Record<string, string>> = {
  ...{ Æ: "AE", æ: "ae", Ð: "D", ð: "d", Ø: "O", ø: "o", Þ: "Th", þ: "th", ß: "ss" },
  ...{ Đ: "D", đ: "d", ı: "i", Ł: "L", ł: "l" },
};

// A run of capitals and what follows it is one word, digits are one; anything else separates, at either end too.
function snakeCase(key: string): string {
  const plain = key
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[\u00c6-\u0142]/g, (letter) => ascii[letter] ?? letter);
  // Letters of other scripts stay: without them names would be lost, or the same.
  const words = [
    ...plain.matchAll(/\p{Lu}+[\p{Ll}\p{Lo}\p{M}]*|[\p{Ll}\p{Lo}\p{M}]+|\p{N}+|[^\p{L}\p{M}\p{N}]+/gu),
  ].map(([word]) => (/^[\p{L}\p{M}\p{N}]/u.test(word) ? word.toLowerCase() : ""));
  const kept = words.length < 3 ? words : [words[0], ...words.slice(1, -1).filter(Boolean), words.at(-1)];
  return [...(/^\d/.test(kept[0] ?? "") ? [""] : []), ...kept].join("_");
}

// The last is taken first, and a name that is taken already has its parent's before it; once a list was met, all have.
function flatten(record: Record<string, unknown>, lists: boolean): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const waiting: [value: unknown, key: string][] = [[record, "_"]];
  let always = false;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [value, parent] = next;
    if (isRecord(value))
      for (const [key, inner] of Object.entries(value))
        waiting.push([inner, always || Object.hasOwn(out, key) ? `${parent}.${key}` : key]);
    else if (Array.isArray(value) && lists) {
      always ||= value.length > 0;
      for (const [at, each] of value.entries()) waiting.push([each, `${parent}.${at}`]);
    } else setAt(out, [parent], value);
  }
  return out;
}

function flattenAt(context: Context, component: Component): Transform {
  const path = list(component["field_path"]).map((part) => text(context, component, part));
  const rule = optionalChild(component, "key_transformation");
  return (record) => {
    const value = dpathOne(record, path);
    if (isRecord(value)) {
      const entries = Object.entries(value).map(
        ([key, each]) =>
          [
            rule
              ? `${text(context, rule, rule["prefix"] ?? "")}${key}${text(context, rule, rule["suffix"] ?? "")}`
              : key,
            each,
          ] as const,
      );
      if (component["replace_record"] === true && entries.length > 0)
        for (const key of Object.keys(record)) delete record[key];
      // A field that there is already is not overwritten: then nothing is taken out.
      else if (entries.some(([key]) => Object.hasOwn(record, key))) return;
      else if (component["delete_origin_value"] === true) removeAt(record, path);
      for (const [key, each] of entries) setAt(record, [key], each);
    }
  };
}
