// The methods and attributes of Python's values that a template may use. Nothing else is reachable: not JavaScript's, not Python's own internals.
import { Arguments, type Method } from "./arguments.ts";
import { compare, equals } from "./compare.ts";
import { dateFields, dateMethods, deltaFields } from "./date-methods.ts";
import { DateTime, PyDate, TimeDelta } from "./datetime.ts";
import { EvaluationError } from "./errors.ts";
import { format } from "./format.ts";
import { iterate, pairsOf } from "./iterate.ts";
import { AttributeDict, fromJson } from "./json.ts";
import { lookup, MAX_SIZE } from "./operators.ts";
import { Callable, type Dict, float, isDict, Tuple, truth, typeName, Undefined } from "./python.ts";
import { str } from "./repr.ts";
import { textMethods } from "./text-methods.ts";

const text: Readonly<Record<string, Method<string>>> = {
  ...textMethods,
  format: (s, a) => format(s, a, member),
  format_map: (s, a) =>
    format(s, new Arguments("format_map", [], a.required(0, "mapping") as Map<string, unknown>), member),
};

const dict: Readonly<Record<string, Method<Dict>>> = {
  get: (d, a) => {
    const found = lookup(d, a.required(0, "key"));
    return found instanceof Undefined ? a.any(1, "default", null) : found;
  },
  keys: (d) => [...d.keys()],
  values: (d) => [...d.values()],
  items: (d) => [...d].map((entry) => new Tuple(entry)),
  copy: (d) => new Map(d),
  // The sandbox lets a template change its own values: manifests use update, setdefault and pop on them.
  update: (d, a) => {
    for (const [key, value] of [...pairsOf(a.any(0, "other", [])), ...a.named]) d.set(key, value);
    return null;
  },
  setdefault: (d, a) => {
    if (!d.has(a.required(0, "key"))) d.set(a.required(0, "key"), a.any(1, "default", null));
    return d.get(a.required(0, "key"));
  },
  pop: (d, a) => {
    const key = a.required(0, "key");
    if (!d.has(key) && !a.has(1, "default")) throw new EvaluationError(str(key));
    const value = d.has(key) ? d.get(key) : a.any(1, "default");
    d.delete(key);
    return value;
  },
};

const list: Readonly<Record<string, Method<readonly unknown[]>>> = {
  index: (l, a) => {
    const at = l.findIndex((item) => equals(item, a.required(0, "value")));
    if (at < 0) throw new EvaluationError(`${str(a.required(0, "value"))} is not in list`);
    return at;
  },
  count: (l, a) => l.filter((item) => equals(item, a.required(0, "value"))).length,
  copy: (l) => [...l],
};

const mutations: Readonly<Record<string, Method<unknown[]>>> = {
  append: (l, a) => {
    if (l.length >= MAX_SIZE) throw new EvaluationError("the list is too large");
    l.push(a.required(0, "object"));
    return null;
  },
  extend: (l, a) => {
    for (const item of iterate(a.required(0, "iterable"))) l.push(item);
    return null;
  },
  pop: (l, a) => l.splice(a.number(0, "index", -1), 1)[0] ?? new Undefined("list"),
  insert: (l, a) => {
    l.splice(a.number(0, "index"), 0, a.required(1, "object"));
    return null;
  },
  remove: (l, a) => {
    l.splice(list["index"]?.(l, a) as number, 1);
    return null;
  },
  reverse: (l) => {
    l.reverse();
    return null;
  },
  sort: (l, a) => {
    l.sort((x, y) => (truth(a.any(1, "reverse", false)) ? compare(y, x) : compare(x, y)));
    return null;
  },
};

const method = <T>(table: Readonly<Record<string, Method<T>>>, self: T, name: string): Callable | undefined => {
  const found = Object.hasOwn(table, name) ? table[name] : undefined;
  return found && new Callable(name, (positional, named) => found(self, new Arguments(name, positional, named)));
};

/** A method or attribute of the value, or undefined when there is none of that name. */
function pythonAttribute(value: unknown, name: string): unknown {
  if (typeof value === "string") return method(text, value, name);
  if (value instanceof AttributeDict && Object.hasOwn(value.attributes, name)) return fromJson(value.attributes[name]);
  if (isDict(value)) return method(dict, value, name);
  if (Array.isArray(value)) return method(list, value, name) ?? method(mutations, value, name);
  if (value instanceof Tuple)
    return value.names.includes(name) ? value.items[value.names.indexOf(name)] : method(list, value.items, name);
  if (value instanceof DateTime || value instanceof PyDate) {
    if (Object.hasOwn(dateFields, name)) return dateFields[name]?.(value);
    return method(dateMethods, value, name);
  }
  if (value instanceof TimeDelta) {
    if (name === "total_seconds") return new Callable(name, () => float(Number(value.us) / 1e6));
    return Object.hasOwn(deltaFields, name) ? deltaFields[name]?.(value) : undefined;
  }
  return undefined;
}

/** `value.name` as a template sees it: Python's attribute first, then the item, else Undefined. */
export function member(value: unknown, name: string): unknown {
  if (name.startsWith("_") && !isDict(value)) return new Undefined(`access to attribute '${name}'`);
  const attribute = pythonAttribute(value, name);
  if (attribute !== undefined) return attribute;
  if (isDict(value)) return lookup(value, name);
  return new Undefined(`'${typeName(value)} object' has no attribute '${name}'`);
}
