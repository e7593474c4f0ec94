// JSON schemas as callers write them, whatever draft they learnt from: what every translated wire does with them.
import { isObject, list, setField } from "#contract/json-object.ts";
import { pointerParts, valueAt } from "#contract/json-pointer.ts";
import { lists, maps, single } from "#contract/json-schema/keywords.ts";
import { percentDecoded } from "#shared/percent-encoding.ts";

export type Schema = Readonly<Record<string, unknown>>;

const kinds: ReadonlyMap<string, string> = new Map([
  ...[...maps].map((key) => [key, "map"] as const),
  ...[...lists].map((key) => [key, "list"] as const),
  ...[...single].map((key) => [key, "single"] as const),
  ...(["required", "type", "enum"] as const).map((key) => [key, key] as const),
  ...(["exclusiveMinimum", "exclusiveMaximum"] as const).map((key) => [key, "limit"] as const),
]);
const types: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** What a reference within the schema points at, a fragment of a URI (`#/definitions/List%3CItem%3E`); undefined where there is no such thing. */
export function pointed(root: Schema, reference: string): unknown {
  return valueAt(root, pointerParts(percentDecoded(reference)));
}

/** A schema that is one reference, as generators give those that have a name, as what it refers to. */
export function dereferenced(schema: Schema): Schema {
  const reference = schema["$ref"];
  const target = typeof reference === "string" && reference.startsWith("#/") ? pointed(schema, reference) : null;
  if (!isObject(target)) return schema;
  const { $ref: _ref, ...rest } = schema;
  return { ...rest, ...target };
}

const DEEPEST = 100;
/** Characters that references stand for, beyond some times the schema's own: those to long ones, or to references, multiply without end. */
const FEW_COPIED = 256 * 1024;
const MOST_COPIES = 4;

/** The schema with what its references refer to in their place; where that is without end, the innermost say nothing. */
export function inlined(root: Schema): Schema {
  const text = JSON.stringify(root);
  if (!text.includes('"$ref":')) return root;
  let room = FEW_COPIED + MOST_COPIES * text.length;
  const follow = (node: unknown, path: readonly unknown[], depth: number): unknown => {
    if (Array.isArray(node)) return node.map((one) => follow(one, path, depth));
    if (!isObject(node)) return node;
    if (depth > DEEPEST || room < 0) return {};
    const { $ref: reference, ...rest } = node;
    if (typeof reference !== "string") {
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, follow(value, path, depth + 1)]));
    }
    const target = /^#(\/|$)/.test(reference) ? pointed(root, reference) : null;
    const more = isObject(target) && !path.includes(target) ? target : {};
    room -= JSON.stringify(more).length;
    return follow({ ...more, ...rest }, [...path, target], depth + 1);
  };
  const { $defs: _defs, definitions: _definitions, ...schema } = root;
  return follow(schema, [root], 0) as Schema;
}

/**
 * The schema as draft 2020-12 has it, by which services judge all of a request's: tuples, exclusive limits and `required` of older drafts are said
 * anew, and keywords that say nothing (null, a type that is none, PHP's empty list in the place of a map) are left out. The same object where nothing
 * is old: each call's tools come through here.
 */
export function modernSchema(schema: Schema): Schema {
  const changes: [string, unknown][] = [];
  for (const key in schema) {
    const said = keyword(key, schema[key]);
    if (said !== schema[key]) changes.push([key, said]);
  }
  if (Array.isArray(schema["items"])) {
    changes.push(["prefixItems", schema["items"].map(nested)], ["items", keyword("items", schema["additionalItems"])]);
    changes.push(["additionalItems", undefined]);
  }
  for (const [exclusive, limit] of limits) {
    if (schema[exclusive] === true) changes.push([exclusive, schema[limit]], [limit, undefined]);
  }
  const marked = isObject(schema["properties"]) ? membersMarked(schema["properties"]) : [];
  if (marked.length > 0) changes.push(["required", keyword("required", [...list(schema["required"]), ...marked])]);
  if (changes.length === 0) return schema;
  const made = new Map([...Object.entries(schema), ...changes]);
  return Object.fromEntries([...made].filter(([, value]) => value !== undefined));
}

const limits = [
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
] as const;

// Draft 3 marks the member itself.
function membersMarked(properties: Readonly<Record<string, unknown>>): readonly string[] {
  const marked: string[] = [];
  for (const name in properties) {
    const member = properties[name];
    if (isObject(member) && member["required"] === true) marked.push(name);
  }
  return marked;
}

// The value itself where it is one of today; undefined where it says nothing.
function keyword(key: string, value: unknown): unknown {
  if (value === null) return key === "const" || key === "default" ? value : undefined;
  switch (kinds.get(key)) {
    case "map":
      return isObject(value) ? eachOf(value) : undefined;
    case "list":
      return Array.isArray(value) ? same(value, value.map(nested)) : undefined;
    case "single":
      return isObject(value) || typeof value === "boolean" ? nested(value) : undefined;
    case "required": {
      if (isShortList(value)) return value;
      const names = [...new Set(list(value).filter((name) => typeof name === "string"))];
      return Array.isArray(value) ? same(value, names) : undefined;
    }
    case "type": {
      if (!Array.isArray(value)) return types.has(value) ? value : undefined;
      const known = [...new Set(value.filter((one) => types.has(one)))];
      return known.length > 0 ? same(value, known) : undefined;
    }
    case "enum":
      return Array.isArray(value) && value.length > 0 ? value : undefined;
    case "limit":
      return typeof value === "boolean" ? undefined : value;
    default:
      return value;
  }
}

function nested(value: unknown): unknown {
  return isObject(value) ? modernSchema(value) : value;
}

function eachOf(map: Record<string, unknown>): Record<string, unknown> {
  let made = map;
  for (const name in map) {
    const one = nested(map[name]);
    if (one === map[name]) continue;
    if (made === map) made = { ...map };
    setField(made, name, one);
  }
  return made;
}

// Of different names.
function isShortList(value: unknown): boolean {
  if (!Array.isArray(value) || value.length > 30) return false;
  return value.every((name, at) => typeof name === "string" && value.indexOf(name) === at);
}

function same(given: readonly unknown[], made: readonly unknown[]): readonly unknown[] {
  return given.length === made.length && given.every((one, index) => one === made[index]) ? given : made;
}
