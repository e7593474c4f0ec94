// A schema made plain: references followed, parts merged into the narrower of both, one branch of several taken.
import { fields, isObject, setField } from "#contract/json-object.ts";
import { unescapedPart, valueAt } from "#contract/json-pointer.ts";
import { percentDecoded } from "#shared/percent-encoding.ts";
import { type Context, MOST_ITEMS, namesOf, type Schema, spend } from "./sampling.ts";

/**
 * `$ref` followed, `allOf` merged, one branch of `anyOf` / `oneOf` taken: near the depth limit the one that ends soonest. Of a condition what makes it
 * true is taken, and what follows from that.
 */
export function resolve(schema: Schema, context: Context, hops = 0): Schema {
  if (hops > 20 || context.budget.left < 0 || !spend(context, stepsOf(schema))) return {};
  const { $ref: reference, allOf, anyOf, oneOf, if: condition, then, else: otherwise, ...own } = schema;
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
  if (condition !== undefined && excludes(merged, condition, context)) add(otherwise);
  else if (condition !== undefined) for (const part of [condition, then]) add(part);
  return merged;
}

/** Members, the longer lists and objects among them too. */
function stepsOf(schema: Schema): number {
  let steps = 1;
  for (const member of Object.values(schema)) {
    steps += 1;
    if (Array.isArray(member)) steps += Math.floor(member.length / 50);
    else if (isObject(member)) steps += Math.floor(Object.keys(member).length / 5);
  }
  return steps;
}

// Whether the condition never holds, or asks for a value of a property that the schema has fixed to others.
function excludes(schema: Schema, condition: unknown, context: Context): boolean {
  if (condition === false) return true;
  const asked = fields(fields(condition)["properties"]);
  const known = fields(schema["properties"]);
  spend(context, stepsOf(asked));
  return Object.keys(asked).some((name) => {
    const [mine, theirs] = [valuesOf(known[name], context), valuesOf(asked[name], context)];
    return mine !== null && theirs !== null && !theirs.some((one) => mine.includes(one));
  });
}

/** What a schema may be, as JSON, where it says so itself. */
export function valuesOf(schema: unknown, context: Context): string[] | null {
  const { const: only, enum: listed } = fields(schema);
  if (only !== undefined) return texts([only], context);
  return Array.isArray(listed) ? texts(listed.slice(0, MOST_ITEMS), context) : null;
}

function texts(values: readonly unknown[], context: Context): string[] {
  return values.map((one) => {
    const text = JSON.stringify(one);
    spend(context, 1 + Math.ceil(text.length / 50));
    return text;
  });
}

function nests(branch: unknown): boolean {
  if (typeof branch !== "object" || branch === null) return false;
  return "$ref" in branch || "properties" in branch || "items" in branch;
}

/** Of two limits the narrower one. */
const narrower: Readonly<Record<string, (a: number, b: number) => number>> = {
  ...Object.fromEntries(["minimum", "exclusiveMinimum"].map((name) => [name, Math.max])),
  ...Object.fromEntries(["minLength", "minItems", "minProperties"].map((name) => [name, Math.max])),
  ...Object.fromEntries(["maximum", "exclusiveMaximum"].map((name) => [name, Math.min])),
  ...Object.fromEntries(["maxLength", "maxItems", "maxProperties"].map((name) => [name, Math.min])),
};

function merge(a: Schema, b: Schema, context: Context): Schema {
  const required = [...namesOf(a["required"]), ...namesOf(b["required"])];
  const [mine, theirs] = [fields(a["properties"]), fields(b["properties"])];
  const properties = { ...mine };
  for (const [name, one] of Object.entries(theirs))
    setField(properties, name, Object.hasOwn(mine, name) ? both(mine[name], one) : one);
  const merged: Record<string, unknown> = { ...a, ...b };
  for (const [name, narrow] of Object.entries(narrower)) {
    const [one, other] = [a[name], b[name]];
    if (typeof one === "number" && typeof other === "number") merged[name] = narrow(one, other);
  }
  const [one, other] = [a["enum"], b["enum"]];
  if (Array.isArray(one) && Array.isArray(other)) {
    const known = new Set(texts(one, context));
    const asked = texts(other, context);
    merged["enum"] = other.filter((_, at) => known.has(asked[at] ?? ""));
  }
  if (a["items"] && b["items"]) merged["items"] = both(a["items"], b["items"]);
  if (isNever(a["additionalProperties"])) merged["additionalProperties"] = false;
  spend(context, Object.keys(a).length + required.length + Object.keys(properties).length);
  return {
    ...merged,
    ...(required.length > 0 ? { required } : {}),
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
  };
}

/** Whether nothing satisfies a schema that says so: `false`, or `{"not": {}}`, as generators write it. */
export function isNever(schema: unknown): boolean {
  if (!isObject(schema)) return schema === false;
  const { not: excluded } = schema;
  return excluded === true || (isObject(excluded) && Object.keys(excluded).length === 0);
}

/** What satisfies two schemas. */
export function both(a: unknown, b: unknown): unknown {
  if (isNever(a) || isNever(b)) return false;
  if (!isObject(a)) return b;
  return isObject(b) ? { allOf: [a, b] } : a;
}

function lookUp(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#")) return {};
  const parts = reference.split("/").slice(1).map(percentDecoded).map(unescapedPart);
  const found = valueAt(root, parts);
  return found === undefined ? {} : found;
}
