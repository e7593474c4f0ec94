// A value that satisfies a JSON schema (2020-12, and what OpenAI's strict mode allows), drawn from a seeded generator: the arguments of
// the sandbox's tool calls and its answers to `response_format`. Real models obey schemas; so must their stand-in.
import { RE2JS } from "re2js";
import { setField } from "#contract/json-object.ts";
import { sampleForPattern } from "./pattern.ts";
import type { Random } from "./random.ts";

type Schema = Readonly<Record<string, unknown>>;
const MAX_DEPTH = 12;
/** Of what must hold itself. */
const MOST_NESTING = 40;
/** Of an array, or of an object beyond its named properties. */
const MOST_ITEMS = 100;
const LONGEST = 10_000;

/** Steps left for all samples of one answer: schemas are strangers', and references, lengths and patterns multiply without end. */
export interface Budget {
  left: number;
}

export function sampleBudget(): Budget {
  return { left: 50_000 };
}

/** Contradictory schemas get some value all the same. Recursion through `$ref` ends where the schema lets it end, and with the budget. */
export function sampleForSchema(schema: unknown, random: Random, budget = sampleBudget()): unknown {
  return value(schema, { root: (schema ?? {}) as Schema, random, depth: 0, name: "value", budget });
}

interface Context {
  readonly root: Schema;
  readonly random: Random;
  readonly depth: number;
  /** The property's name: makes strings readable. */
  readonly name: string;
  readonly budget: Budget;
}

// Takes steps; false when none are left.
function spend({ budget }: Context, steps: number): boolean {
  budget.left -= steps;
  return budget.left >= 0;
}

function value(schema: unknown, context: Context): unknown {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return context.name;
  const plain = resolve(schema as Schema, context);
  if ("const" in plain) return given(plain["const"], context);
  if (Array.isArray(plain["enum"]) && plain["enum"].length > 0)
    return given(context.random.pick(plain["enum"]), context);
  if ("default" in plain) return given(plain["default"], context);
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

// A value of the schema's own, which may be large and stand in many places.
function given(found: unknown, context: Context): unknown {
  if (context.budget.left < 0) return null;
  if (typeof found === "string" || (typeof found === "object" && found !== null))
    spend(context, Math.ceil(JSON.stringify(found).length / 50));
  return found;
}

// `$ref` followed, `allOf` merged, one branch of `anyOf` / `oneOf` taken: near the depth limit the one that ends soonest.
function resolve(schema: Schema, context: Context, hops = 0): Schema {
  if (hops > 20 || context.budget.left < 0 || !spend(context, 1 + Object.keys(schema).length)) return {};
  const { $ref: reference, allOf, anyOf, oneOf, ...own } = schema;
  let merged: Schema = own;
  const add = (part: unknown) => {
    if (typeof part === "object" && part !== null && context.budget.left >= 0) {
      merged = merge(merged, resolve(part as Schema, context, hops + 1), context);
    }
  };
  if (typeof reference === "string") add(lookUp(context.root, reference));
  if (Array.isArray(allOf)) for (const part of allOf) add(part);
  for (const branches of [anyOf, oneOf]) {
    if (!Array.isArray(branches) || branches.length === 0 || !spend(context, branches.length)) continue;
    const scalar = branches.find((branch) => !nests(branch));
    add(context.depth > 3 && scalar ? scalar : context.random.pick(branches));
  }
  return merged;
}

function nests(branch: unknown): boolean {
  if (typeof branch !== "object" || branch === null) return false;
  return "$ref" in branch || "properties" in branch || "items" in branch;
}

function merge(a: Schema, b: Schema, context: Context): Schema {
  const required = [...listOf(a["required"]), ...listOf(b["required"])];
  const properties = { ...(a["properties"] as object), ...(b["properties"] as object) };
  spend(context, Object.keys(a).length + required.length + Object.keys(properties).length);
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
  if (context.depth >= MOST_NESTING) return {};
  const properties = (schema["properties"] ?? {}) as Record<string, unknown>;
  const required = new Set(listOf(schema["required"]));
  const filled: Record<string, unknown> = {};
  spend(context, Object.keys(properties).length + required.size);
  let count = 0;
  const set = (name: string, child: unknown) => {
    const child_ = value(child, { ...context, depth: context.depth + 1, name });
    if (!Object.hasOwn(filled, name)) count++;
    setField(filled, name, child_);
  };
  for (const [name, child] of Object.entries(properties)) {
    if (required.has(name) || context.depth < 3) set(name, child);
  }
  if (context.depth >= MAX_DEPTH || context.budget.left < 0) return filled;
  const extra = schema["additionalProperties"];
  for (const name of required) if (!Object.hasOwn(properties, name)) set(name, typeof extra === "object" ? extra : {});
  const least = numberOf(schema["minProperties"], 0);
  for (let n = 1; count < least && n <= MOST_ITEMS; n++) {
    set(`key_${n}`, typeof extra === "object" ? extra : {});
  }
  return filled;
}

function array(schema: Schema, context: Context): unknown[] {
  if (context.depth >= MOST_NESTING) return [];
  const fixed = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
  const least = numberOf(schema["minItems"], 0);
  const most = numberOf(schema["maxItems"], Math.max(least, 2));
  const wanted = context.depth > 4 ? least : Math.max(least, Math.min(most, Math.max(1, fixed.length)));
  const items: unknown[] = [];
  const seen = new Set<string>();
  for (let tries = 0; items.length < Math.min(wanted, MOST_ITEMS) && tries < 400; tries++) {
    const of = fixed[items.length] ?? schema["items"] ?? {};
    const item = value(of, { ...context, depth: context.depth + 1, name: `${context.name}_${tries + 1}` });
    if (schema["uniqueItems"] === true) {
      const key = JSON.stringify(item);
      if (seen.has(key) && spend(context, Math.ceil(key.length / 50))) continue;
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
  if (context.budget.left < 0) return "";
  if (typeof schema["pattern"] === "string")
    return patterned(schema["pattern"], Math.min(least, LONGEST), most, context);
  const word =
    context.name
      .slice(0, LONGEST)
      .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
      .trim() || "text";
  const text = word.padEnd(Math.min(least, LONGEST), " sandbox");
  spend(context, Math.ceil(text.length / 50));
  return text.length > most ? text.slice(0, most) : text;
}

/** About the instructions of a compiled pattern that is still tried out; others are trusted to match. */
const MOST_WEIGHT = 10_000;

function patterned(pattern: string, least: number, most: number, context: Context): string {
  const { random } = context;
  const weight = pattern.length * (1 + repetitions(pattern));
  if (weight > MOST_WEIGHT || !spend(context, 50 + weight)) return sampleForPattern(pattern, random);
  const found = (text: string) =>
    spend(context, 20 + Math.ceil((weight * text.length) / 100)) && expression.matcher(text).find();
  // RE2: the pattern is a stranger's, and a backtracking engine can be made to run for years.
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(pattern);
  } catch {
    return sampleForPattern(pattern, random);
  }
  let best = "";
  for (let tries = 0; tries < 60 && context.budget.left >= 0; tries++) {
    const text = sampleForPattern(pattern, random);
    if (text.length > 400 || !found(text)) continue;
    best = text;
    if (text.length >= least && text.length <= most) return text;
    if (text.length < least) {
      const padded = text.padEnd(least, text.at(-1) ?? "a");
      if (found(padded)) return padded;
    }
  }
  return best;
}

// What `{n}` and `{n,m}` write out again.
function repetitions(pattern: string): number {
  let sum = 0;
  for (const [, from, to] of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) sum += Number(to || from);
  return sum;
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
