// The context's JSON as Python's values, and those as JSON.
import { setField } from "#contract/json-object.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import {
  Attributed,
  Callable,
  Float,
  float,
  HeaderDict,
  isDict,
  isPythonObject,
  Opaque,
  Tuple,
  Undefined,
} from "./python.ts";
import { str } from "./repr.ts";

/** The same as a dict: `.name` finds an attribute first, `['name']` an item. */
export class AttributeDict extends Map<unknown, unknown> {
  readonly attributes: Attributed["attributes"];
  constructor({ members, attributes }: Attributed) {
    super(Object.keys(members).map((key) => [key, fromJson(members[key])]));
    this.attributes = attributes;
  }
}

/** The context's JSON as Python sees it: objects become Maps, so that no property of JavaScript's is ever reachable. */
export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (value === undefined) return null;
  if (value instanceof ExactNumber) return float(Number(value.digits));
  // A template may change what it is given.
  if (value instanceof HeaderDict) return new HeaderDict(value);
  if (value instanceof Attributed) return new AttributeDict(value);
  if (
    typeof value !== "object" ||
    value === null ||
    value instanceof Map ||
    isPythonObject(value) ||
    value instanceof Callable ||
    value instanceof Float
  )
    return value;
  const map = new Map<unknown, unknown>();
  for (const key of Object.keys(value)) map.set(key, fromJson((value as Record<string, unknown>)[key]));
  return map;
}

/** A Python value as JSON; tuples become arrays, keys text. Values that JSON cannot hold fail. `whole`: what 5.0 becomes. */
export function toJson(value: unknown, whole: (value: Float) => unknown = (each) => each.value): unknown {
  if (value instanceof Float) return whole(value);
  if (value instanceof Tuple) return value.items.map((each) => toJson(each, whole));
  if (Array.isArray(value)) return value.map((each) => toJson(each, whole));
  if (isDict(value)) {
    const object: Record<string, unknown> = {};
    for (const [key, item] of value) setField(object, typeof key === "string" ? key : str(key), toJson(item, whole));
    return object;
  }
  if (value instanceof Undefined) return "";
  if (value instanceof Opaque || isPythonObject(value)) return str(value);
  return value;
}
