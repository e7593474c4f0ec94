// A value that satisfies a JSON schema (2020-12, and what OpenAI's strict mode allows), drawn from a seeded generator: the arguments of
// the sandbox's tool calls and its answers to `response_format`. Real models obey schemas; so must their stand-in.
import { fields, list, setField } from "#contract/json-object.ts";
import { sampleForPattern } from "./pattern.ts";
import type { Random } from "./random.ts";
import { both, isNever, resolve, valuesOf } from "./resolve.ts";
import { type Context, MOST_ITEMS, namesOf, numberOf, type Schema, sampleBudget, spend } from "./sampling.ts";
import { matches, string } from "./text.ts";

const MAX_DEPTH = 12;
/** Of what must hold itself. */
const MOST_NESTING = 40;
/** For a value that the schema does not exclude. */
const MOST_TRIES = 8;

/** Contradictory schemas get some value all the same. Recursion through `$ref` ends where the schema lets it end, and with the budget. */
export function sampleForSchema(schema: unknown, random: Random, budget = sampleBudget()): unknown {
  return value(schema, { root: (schema ?? {}) as Schema, random, depth: 0, name: "value", budget });
}

function value(schema: unknown, context: Context): unknown {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return context.name;
  const plain = resolve(schema as Schema, context);
  const excluded = valuesOf(plain["not"], context);
  let found = sampled(plain, context);
  for (let tries = 1; excluded?.includes(JSON.stringify(found)) && tries <= MOST_TRIES; tries++)
    found = sampled(plain, { ...context, again: tries });
  return found;
}

function sampled(plain: Schema, context: Context): unknown {
  if ("const" in plain) return given(plain["const"], context);
  if (Array.isArray(plain["enum"]) && plain["enum"].length > 0)
    return given(context.random.pick(plain["enum"]), context);
  if ("default" in plain && isOf(plain["type"], plain["default"])) return given(plain["default"], context);
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

// Whether a value is of a type that the schema names, if it does.
function isOf(types: unknown, found: unknown): boolean {
  const type = found === null ? "null" : Array.isArray(found) ? "array" : typeof found;
  const named = types === undefined ? [type] : [types].flat();
  return named.includes(type) || (named.includes("integer") && Number.isInteger(found));
}

// A value of the schema's own, which may be large and stand in many places.
function given(found: unknown, context: Context): unknown {
  if (context.budget.left < 0) return null;
  if (typeof found === "string" || (typeof found === "object" && found !== null))
    spend(context, Math.ceil(JSON.stringify(found).length / 50));
  return found;
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
  const properties = fields(schema["properties"]);
  const required = new Set(namesOf(schema["required"]));
  const filled: Record<string, unknown> = {};
  spend(context, Object.keys(properties).length + required.size);
  let count = 0;
  const set = (name: string, child: unknown) => {
    const child_ = value(child, { ...context, depth: context.depth + 1, name });
    if (!Object.hasOwn(filled, name)) count++;
    setField(filled, name, child_);
  };
  let optional = numberOf(schema["maxProperties"], Number.POSITIVE_INFINITY) - required.size;
  for (const [name, child] of Object.entries(properties)) {
    if (required.has(name)) set(name, child);
    else if (context.depth < 3 && !isNever(child) && optional-- > 0) set(name, child);
  }
  if (context.depth >= MAX_DEPTH || context.budget.left < 0) return filled;
  const others = otherProperties(schema, context);
  for (const name of required) if (!Object.hasOwn(properties, name)) set(name, others.schemaOf(name));
  const dependents = fields(schema["dependentRequired"]);
  for (const name of Object.keys(dependents)) {
    if (!Object.hasOwn(filled, name)) continue;
    const also = namesOf(dependents[name]);
    spend(context, Math.ceil(also.length / 50));
    for (const other of also)
      if (!Object.hasOwn(filled, other))
        set(other, Object.hasOwn(properties, other) ? properties[other] : others.schemaOf(other));
  }
  const least = numberOf(schema["minProperties"], 0);
  for (const [name, child] of Object.entries(properties))
    if (count < least && !isNever(child) && !Object.hasOwn(filled, name)) set(name, child);
  for (let n = 1; count < least && n <= MOST_ITEMS; n++) {
    const name = others.nameOf(n);
    set(name, others.schemaOf(name));
  }
  return filled;
}

// Names and schemas of the properties that `properties` has not.
function otherProperties(schema: Schema, context: Context) {
  const extra = schema["additionalProperties"];
  const patterns = Object.entries(fields(schema["patternProperties"])).slice(0, MOST_ITEMS);
  const names = fields(schema["propertyNames"]);
  const pattern = names["pattern"] ?? (isNever(extra) ? patterns[0]?.[0] : undefined);
  return {
    nameOf(n: number): string {
      if (Array.isArray(names["enum"])) return String(names["enum"][n - 1] ?? "");
      return typeof pattern === "string" ? sampleForPattern(pattern, context.random) : `key_${n}`;
    },
    schemaOf(name: string): unknown {
      const found = patterns.find(([one]) => matches(one, name, context));
      return found?.[1] ?? (typeof extra === "object" ? extra : {});
    },
  };
}

function array(schema: Schema, context: Context): unknown[] {
  if (context.depth >= MOST_NESTING) return [];
  const fixed = list(schema["prefixItems"]);
  const { items: each = {}, contains } = schema;
  // Behind the fixed ones.
  const some = contains === undefined ? 0 : fixed.length + numberOf(schema["minContains"], 1);
  const least = Math.max(numberOf(schema["minItems"], 0), some);
  const most = isNever(each) ? fixed.length : numberOf(schema["maxItems"], Math.max(least, 2));
  const wanted = context.depth > 4 ? least : Math.max(least, Math.min(most, Math.max(1, fixed.length)));
  const items: unknown[] = [];
  const seen = new Set<string>();
  for (let tries = 0; items.length < Math.min(wanted, MOST_ITEMS) && tries < 400; tries++) {
    const of = fixed[items.length] ?? (items.length < some ? both(each, contains) : each);
    const again = tries > items.length ? { again: tries } : {};
    const item = value(of, { ...context, ...again, depth: context.depth + 1, name: `${context.name}_${tries + 1}` });
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
  // Of the steps in which an integer has to come some are wide enough to hold one.
  const gap = whole ? Math.max(step, 1) : step > 0 ? step : 0.5;
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
      if (Number.isInteger(multiple / step) && !(whole && !Number.isInteger(multiple))) return multiple;
    }
    return first * step;
  }
  const middle = low + ((high - low) * (1 + context.random.below(8))) / 10;
  return Number(middle.toPrecision(6)) > low && Number(middle.toPrecision(6)) < high
    ? Number(middle.toPrecision(6))
    : middle;
}
