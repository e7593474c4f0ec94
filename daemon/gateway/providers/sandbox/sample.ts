// A value that satisfies a JSON schema (2020-12, and what OpenAI's strict mode allows), drawn from a seeded generator: the arguments of
// the sandbox's tool calls and its answers to `response_format`. Real models obey schemas; so must their stand-in.
import { RE2JS } from "re2js";
import { sampleForPattern } from "./pattern.ts";
import type { Random } from "./random.ts";

type Schema = Readonly<Record<string, unknown>>;
const MAX_DEPTH = 12;

/** Contradictory schemas get some value all the same. Recursion through `$ref` ends where the schema lets it end. */
export function sampleForSchema(schema: unknown, random: Random): unknown {
  return value(schema, { root: (schema ?? {}) as Schema, random, depth: 0, name: "value", budget: { left: 20_000 } });
}

interface Context {
  readonly root: Schema;
  readonly random: Random;
  readonly depth: number;
  /** The property's name: makes strings readable. */
  readonly name: string;
  /** Steps left: references can multiply without end. */
  readonly budget: { left: number };
}

function value(schema: unknown, context: Context): unknown {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return context.name;
  const plain = resolve(schema as Schema, context);
  if ("const" in plain) return plain["const"];
  if (Array.isArray(plain["enum"]) && plain["enum"].length > 0) return context.random.pick(plain["enum"]);
  if ("default" in plain) return plain["default"];
  switch (typeOf(plain, context)) {
    case "object":
      return object(plain, context);
    case "array":
      return array(plain, context);
    case "integer":
      return number(plain, context, true);
    case "number":
      return number(plain, context, false);
    case "boolean":
      return context.random.below(2) === 1;
    case "null":
      return null;
    default:
      return string(plain, context);
  }
}

// `$ref` followed, `allOf` merged, one branch of `anyOf` / `oneOf` taken: near the depth limit the one that ends soonest.
function resolve(schema: Schema, context: Context, hops = 0): Schema {
  if (hops > 20 || --context.budget.left < 0) return {};
  const { $ref: reference, allOf, anyOf, oneOf, ...own } = schema;
  let merged: Schema = own;
  const add = (part: unknown) => {
    if (typeof part === "object" && part !== null) {
      merged = merge(merged, resolve(part as Schema, context, hops + 1));
    }
  };
  if (typeof reference === "string") add(lookUp(context.root, reference));
  if (Array.isArray(allOf)) for (const part of allOf) add(part);
  for (const branches of [anyOf, oneOf]) {
    if (!Array.isArray(branches) || branches.length === 0) continue;
    const scalar = branches.find((branch) => !nests(branch));
    add(context.depth > 3 && scalar ? scalar : context.random.pick(branches));
  }
  return merged;
}

function nests(branch: unknown): boolean {
  if (typeof branch !== "object" || branch === null) return false;
  return "$ref" in branch || "properties" in branch || "items" in branch;
}

function merge(a: Schema, b: Schema): Schema {
  const required = [...listOf(a["required"]), ...listOf(b["required"])];
  const properties = { ...(a["properties"] as object), ...(b["properties"] as object) };
  return {
    ...a,
    ...b,
    ...(required.length > 0 ? { required } : {}),
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
  };
}

function lookUp(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#")) return {};
  let at: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return {};
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

function typeOf(schema: Schema, context: Context): string {
  const type = schema["type"];
  if (typeof type === "string") return type;
  if (Array.isArray(type) && type.length > 0) {
    const types = type.filter((t) => t !== "null");
    return String(context.depth > 6 && type.includes("null") ? "null" : (types[0] ?? "null"));
  }
  if (schema["properties"] || schema["required"] || schema["additionalProperties"]) return "object";
  if (schema["items"] || schema["prefixItems"]) return "array";
  if (schema["minimum"] !== undefined || schema["maximum"] !== undefined) return "number";
  return "string";
}

function object(schema: Schema, context: Context): Record<string, unknown> {
  const properties = (schema["properties"] ?? {}) as Record<string, unknown>;
  const required = new Set(listOf(schema["required"]));
  const filled: Record<string, unknown> = {};
  const set = (name: string, child: unknown) => {
    // defineProperty: a schema may name a property "__proto__".
    const child_ = value(child, { ...context, depth: context.depth + 1, name });
    Object.defineProperty(filled, name, { value: child_, enumerable: true, configurable: true, writable: true });
  };
  for (const [name, child] of Object.entries(properties)) {
    if (required.has(name) || context.depth < 3) set(name, child);
  }
  if (context.depth >= MAX_DEPTH || context.budget.left < 0) return filled;
  const extra = schema["additionalProperties"];
  for (const name of required) if (!Object.hasOwn(properties, name)) set(name, typeof extra === "object" ? extra : {});
  const least = numberOf(schema["minProperties"], 0);
  for (let n = 1; Object.keys(filled).length < least && n <= least; n++) {
    set(`key_${n}`, typeof extra === "object" ? extra : {});
  }
  return filled;
}

function array(schema: Schema, context: Context): unknown[] {
  const fixed = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
  const least = numberOf(schema["minItems"], 0);
  const most = numberOf(schema["maxItems"], Math.max(least, 2));
  const wanted = context.depth > 4 ? least : Math.max(least, Math.min(most, Math.max(1, fixed.length)));
  const items: unknown[] = [];
  const seen = new Set<string>();
  for (let tries = 0; items.length < Math.min(wanted, 100) && tries < 400; tries++) {
    const of = fixed[items.length] ?? schema["items"] ?? {};
    const item = value(of, { ...context, depth: context.depth + 1, name: `${context.name}_${tries + 1}` });
    if (schema["uniqueItems"] === true) {
      const key = JSON.stringify(item);
      if (seen.has(key)) continue;
      seen.add(key);
    }
    items.push(item);
  }
  return items;
}

function number(schema: Schema, context: Context, whole: boolean): number {
  const step = numberOf(schema["multipleOf"], whole ? 1 : 0);
  const above = numberOf(schema["exclusiveMinimum"], Number.NEGATIVE_INFINITY);
  const below = numberOf(schema["exclusiveMaximum"], Number.POSITIVE_INFINITY);
  const gap = step > 0 ? step : 0.5;
  let low = Math.max(numberOf(schema["minimum"], Number.NEGATIVE_INFINITY), above + (step > 0 ? Number.EPSILON : 0));
  let high = Math.min(numberOf(schema["maximum"], Number.POSITIVE_INFINITY), below);
  if (low === Number.NEGATIVE_INFINITY) low = high === Number.POSITIVE_INFINITY ? 0 : high - 10 * gap;
  if (high === Number.POSITIVE_INFINITY) high = low + 10 * gap;
  if (step > 0) {
    let first = Math.ceil(low / step);
    if (first * step <= above) first++;
    let last = Math.floor(high / step);
    if (last * step >= below) last--;
    const steps = Math.max(0, Math.min(last - first, 1000));
    const offset = context.random.below(steps + 1);
    // Validators divide: of the multiples take one whose quotient comes out whole in floating point.
    for (let n = 0; n <= steps; n++) {
      const multiple = Number(((first + ((offset + n) % (steps + 1))) * step).toPrecision(15));
      if (Number.isInteger(multiple / step)) return multiple;
    }
    return first * step;
  }
  const middle = low + ((high - low) * (1 + context.random.below(8))) / 10;
  return Number(middle.toPrecision(6)) > low && Number(middle.toPrecision(6)) < high
    ? Number(middle.toPrecision(6))
    : middle;
}

const formats: Record<string, string> = {
  "date-time": "2026-01-15T09:30:00Z",
  date: "2026-01-15",
  time: "09:30:00Z",
  duration: "PT1H",
  email: "sandbox@example.com",
  "idn-email": "sandbox@example.com",
  hostname: "example.com",
  "idn-hostname": "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  url: "https://example.com/",
  iri: "https://example.com/",
  "uri-reference": "/path",
  uuid: "00000000-0000-4000-8000-000000000000",
  regex: "^.*$",
  "json-pointer": "/pointer",
};

function string(schema: Schema, context: Context): string {
  const least = numberOf(schema["minLength"], 0);
  const most = numberOf(schema["maxLength"], Number.POSITIVE_INFINITY);
  const format = formats[String(schema["format"] ?? "")];
  if (format !== undefined) return format;
  if (typeof schema["pattern"] === "string") return patterned(schema["pattern"], least, most, context.random);
  const word = context.name.replaceAll(/[^\p{L}\p{N}]+/gu, " ").trim() || "text";
  const text = word.padEnd(Math.min(least, 10_000), " sandbox");
  return text.length > most ? text.slice(0, most) : text;
}

function patterned(pattern: string, least: number, most: number, random: Random): string {
  // RE2: the pattern is a stranger's, and a backtracking engine can be made to run for years.
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(pattern);
  } catch {
    return sampleForPattern(pattern, random);
  }
  let best = "";
  for (let tries = 0; tries < 60; tries++) {
    const text = sampleForPattern(pattern, random);
    if (text.length > 400 || !expression.matcher(text).find()) continue;
    best = text;
    if (text.length >= least && text.length <= most) return text;
    if (text.length < least) {
      const padded = text.padEnd(least, text.at(-1) ?? "a");
      if (expression.matcher(padded).find()) return padded;
    }
  }
  return best;
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
