// Where one JSON Schema (2020-12) refuses what another accepts. Errs on the side of naming a break: what it cannot compare counts as one
// when it changed.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { code } from "#contract/evaluated.ts";
import { addFormats } from "#contract/formats.ts";
import { canonicalJson } from "#shared/canonical-json.ts";
import { boundBreaks } from "./bounds.ts";
import { meaningOf, type Schema, type SchemaObject, type Side, types, valuesOf } from "./schema.ts";

export interface Break {
  /** JSON pointer into the new contract. */
  readonly pointer: string;
  readonly detail: string;
}

interface Comparison {
  readonly side: Side;
  readonly roots: { readonly from: Schema; readonly to: Schema };
  readonly sameRoots: boolean;
  /** Pairs that are being compared further up: a recursive schema fits where everything else of it does. */
  readonly under: Set<string>;
}

/**
 * Where `after` refuses something that `before` accepts. For outputs the two are swapped: what the new one may produce and the old one did not.
 */
export function narrowings(before: Schema, after: Schema, pointer: string, side: Side): Break[] {
  const [from, to] = [meaningOf(before), meaningOf(after)];
  const sameRoots = canonicalJson(from) === canonicalJson(to);
  return compare(from, to, pointer, { side, roots: { from, to }, sameRoots, under: new Set() });
}

function compare(from: Schema, to: Schema, pointer: string, context: Comparison): Break[] {
  const a = resolve(from, context.roots.from);
  const b = resolve(to, context.roots.to, "exactly");
  if (b === true || a === false) return [];
  const [textA, textB] = [canonicalJson(a), canonicalJson(b)];
  // Equal text with a reference in it may mean something else where the definitions changed.
  if (textA === textB && (context.sameRoots || !refers(textA))) return [];
  const pair = `${textA}\n${textB}`;
  if (context.under.has(pair)) return [];
  context.under.add(pair);
  try {
    return compareObjects(a === true ? {} : a, b, pointer, context);
  } finally {
    context.under.delete(pair);
  }
}

function compareObjects(a: SchemaObject, b: Schema, pointer: string, context: Comparison): Break[] {
  const say = (detail: string): Break => ({ pointer, detail });
  const input = context.side === "input";
  if (b === false) return [say(input ? "nothing is accepted any more" : "there was no output here")];
  if (b === true) return [];
  // What is unevaluated is what no part evaluates.
  const evaluated = b["allOf"] !== undefined && Object.keys(EVALUATING).some((word) => b[word] !== undefined);
  const whole = evaluated ? flat(b, context.roots.to) : null;
  if (whole) return compare(a, whole, pointer, context);
  const values = valuesOf(a);
  if (values) return refusedValues(values, b, context).map((text) => say(`${text} ${verbOf(context)}`));
  // Forms that stayed hold of both: what stands beside them may be all that changed.
  const { oneOf: formsBefore, ...restBefore } = a;
  const { oneOf: formsAfter, ...restAfter } = b;
  const stayed = formsAfter !== undefined && canonicalJson(formsBefore) === canonicalJson(formsAfter);
  const open = Object.keys(EVALUATING).some((word) => b[word] !== undefined);
  if (stayed && !open && !hidesChange(formsAfter, context)) {
    if (compare(restBefore, restAfter, pointer, context).length === 0) return [];
  }
  // What is offered is one of several forms: each must fit.
  for (const word of ["anyOf", "oneOf"]) {
    const forms = a[word];
    if (!Array.isArray(forms)) continue;
    const { [word]: _forms, ...rest } = a;
    return forms.flatMap((form: Schema) => {
      const whole = both(rest, resolve(form, context.roots.from));
      return whole ? compare(whole, b, pointer, context) : [say(`${word} cannot be compared`)];
    });
  }
  if (Array.isArray(a["allOf"])) {
    const { allOf, ...rest } = a;
    const whole = (allOf as Schema[]).reduce<Schema | null>(
      (sum, part) => (sum === null ? null : both(sum, resolve(part, context.roots.from))),
      rest,
    );
    if (whole) return compare(whole, b, pointer, context);
  }
  return [
    ...composed(a, b, pointer, context),
    ...typeBreaks(a, b, context).map(say),
    ...boundBreaks(a, b, context.side).map(say),
    ...objectBreaks(a, b, pointer, context),
    ...arrayBreaks(a, b, pointer, context),
  ];
}

/** Both at once, where no word stands in both with another meaning; null where that is not known. */
function both(one: Schema, other: Schema): Schema | null {
  if (one === false || other === false) return false;
  if (one === true) return other;
  if (other === true) return one;
  const sum: SchemaObject = { ...one };
  for (const [word, value] of Object.entries(other)) {
    const known = sum[word];
    if (known === undefined || canonicalJson(known) === canonicalJson(value)) sum[word] = value;
    else if (word === "required") sum[word] = [...new Set([...(known as string[]), ...(value as string[])])];
    else if (word === "properties") {
      const merged = { ...(known as Record<string, Schema>) };
      for (const [key, schema] of Object.entries(value as Record<string, Schema>)) {
        const whole = both(merged[key] ?? true, schema);
        if (whole === null) return null;
        merged[key] = whole;
      }
      sum[word] = merged;
    } else if (/^(\$|description$|title$|examples?$|default$|deprecated$)/.test(word)) continue;
    else return null;
  }
  return sum;
}

const OPAQUE = [
  ...["not", "if", "then", "else", "patternProperties", "propertyNames", "dependentSchemas"],
  ...["unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains"],
  // Of earlier drafts, but asserted all the same; and a reference that could not be followed.
  ...["dependencies", "$recursiveRef", "$ref", "$dynamicRef"],
];

/** The words of `to` that are made of other schemas. */
function composed(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  const found: Break[] = [];
  for (const word of OPAQUE) {
    const [before, after] = [meantBy(word, a), meantBy(word, b)];
    if (after !== undefined && (canonicalJson(before) !== canonicalJson(after) || hidesChange(after, context)))
      found.push({ pointer, detail: `${word} changed` });
  }
  for (const [word, beside] of Object.entries(EVALUATING))
    if (isOpenEnded(b, word) && beside.some((one) => !evaluatesAsMuch(one, a[one], b[one])))
      found.push({ pointer, detail: `${word}: what stands beside it changed` });
  for (const part of listOf(b["allOf"])) found.push(...compare(a, part, pointer, context));
  for (const word of ["anyOf", "oneOf"]) {
    const forms = listOf(b[word]);
    if (forms.length === 0) continue;
    const fits = byType(a).every((one) => forms.some((form) => compare(one, form, pointer, context).length === 0));
    if (!fits) found.push({ pointer, detail: `${word}: no form accepts all that was accepted` });
    else if (word === "oneOf" && overlaps(forms, context.roots.to))
      found.push({ pointer, detail: "oneOf: its forms may both fit one value" });
  }
  return found;
}

/** Without `minContains`, `contains` wants one. */
function meantBy(word: string, schema: SchemaObject): unknown {
  return word === "minContains" && schema["contains"] !== undefined ? (schema[word] ?? 1) : schema[word];
}

const IN_PLACE = [
  ...["$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"],
  ...["dependentSchemas", "dependencies", "contains"],
];
/** What of a schema, besides its own words for members and items, decides what is left for the unevaluated ones. */
const EVALUATING: Readonly<Record<string, readonly string[]>> = {
  unevaluatedProperties: [...IN_PLACE, "properties", "patternProperties", "additionalProperties"],
  unevaluatedItems: [...IN_PLACE, "prefixItems", "items"],
};

/** Whether other schemas have a say in what the word is about; where none has, it is another `additionalProperties` or `items`. */
function isOpenEnded(schema: SchemaObject, word: string): boolean {
  return schema[word] !== undefined && IN_PLACE.some((one) => schema[one] !== undefined);
}

function evaluatesAsMuch(word: string, from: unknown, to: unknown): boolean {
  if (word === "properties") return Object.keys(from ?? {}).every((key) => Object.hasOwn(to ?? {}, key));
  return canonicalJson(from) === canonicalJson(to);
}

/** The parts of `allOf` and what stands beside it, as one; null where that might not be the same. */
function flat(schema: SchemaObject, root: Schema): Schema | null {
  const { allOf, ...rest } = schema;
  const parts = [rest, ...listOf(allOf).map((part) => resolve(part, root, "exactly"))];
  if (parts.some(hasOthers)) return null;
  return parts.reduce<Schema | null>((sum, part) => (sum === null ? null : both(sum, part)), true);
}

/** What members, or items, that a schema does not describe one by one have to be. */
function othersOf(schema: SchemaObject, word: "additionalProperties" | "items"): Schema {
  const unevaluated = word === "items" ? "unevaluatedItems" : "unevaluatedProperties";
  return (schema[word] ?? (isOpenEnded(schema, unevaluated) ? true : schema[unevaluated]) ?? true) as Schema;
}

function hidesChange(part: unknown, context: Comparison): boolean {
  return !context.sameRoots && refers(canonicalJson(part));
}

function refers(text: string): boolean {
  return /"\$(dynamicR|recursiveR|r)ef"/.test(text);
}

/** `type: [string, null]` is what `anyOf` of a string and null says. */
function byType(schema: SchemaObject): SchemaObject[] {
  return Array.isArray(schema["type"]) ? schema["type"].map((type: unknown) => ({ ...schema, type })) : [schema];
}

/** Whether two forms could accept the same value, as far as types and constant members tell. */
function overlaps(forms: readonly Schema[], root: Schema): boolean {
  const all = forms.map((form) => resolve(form, root));
  return all.some((one, at) => all.slice(at + 1).some((other) => !disjoint(one, other)));
}

function disjoint(one: Schema, other: Schema): boolean {
  if (typeof one === "boolean" || typeof other === "boolean") return one === false || other === false;
  const [values, others] = [valuesOf(one), valuesOf(other)];
  if (values && others) {
    const known = new Set(others.map(canonicalJson));
    return !values.some((value) => known.has(canonicalJson(value)));
  }
  const kinds = (schema: SchemaObject): string[] => types(schema).map((type) => (type === "integer" ? "number" : type));
  const shared = kinds(one).filter((type) => kinds(other).includes(type));
  if (shared.length === 0) return true;
  if (shared.some((type) => type !== "object")) return false;
  const properties = (schema: SchemaObject): Record<string, Schema> =>
    (schema["properties"] ?? {}) as Record<string, Schema>;
  return listOf(one["required"]).some((key) => {
    const mine = properties(one)[String(key)];
    const its = properties(other)[String(key)];
    if (!listOf(other["required"]).includes(key) || typeof mine !== "object" || typeof its !== "object") return false;
    return valuesOf(mine) !== null && valuesOf(its) !== null && disjoint(mine, its);
  });
}

function typeBreaks(a: SchemaObject, b: SchemaObject, context: Comparison): string[] {
  const after = types(b);
  const lost = types(a).filter((type) => !after.includes(type) && !(type === "integer" && after.includes("number")));
  const found = lost.length > 0 ? [`${lost.join(", ")} ${verbOf(context)}`] : [];
  if (b["const"] !== undefined || Array.isArray(b["enum"]))
    found.push(context.side === "input" ? "only some values are accepted now" : "any value may come now");
  return found;
}

/** A finite set is simply tried. */
function refusedValues(values: readonly unknown[], to: SchemaObject, { roots }: Comparison): string[] {
  let check: ValidateFunction;
  try {
    const ajv = new Ajv2020({ strict: false, logger: false, validateSchema: false, code });
    addFormats(ajv);
    const definitions =
      typeof roots.to === "object" ? { $defs: roots.to["$defs"], definitions: roots.to["definitions"] } : {};
    check = ajv.compile({ ...definitions, ...to });
  } catch {
    return ["what was allowed"];
  }
  return values.filter((value) => !check(value)).map((value) => JSON.stringify(value));
}

function objectBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  if (!types(a).includes("object") || !types(b).includes("object")) return [];
  const input = context.side === "input";
  const found: Break[] = [];
  const before = (a["properties"] ?? {}) as Record<string, Schema>;
  const after = (b["properties"] ?? {}) as Record<string, Schema>;
  const required = new Set(listOf(a["required"]).map(String));
  for (const key of listOf(b["required"]).map(String))
    if (!required.has(key))
      found.push({
        pointer: `${pointer}/required`,
        detail: input ? `${key} is required now` : `${key} is no longer always there`,
      });
  const rest = othersOf(b, "additionalProperties");
  for (const [key, schema] of Object.entries(before)) {
    const at = memberOf(pointer, key);
    const next = Object.hasOwn(after, key) ? after[key] : undefined;
    if (next !== undefined) found.push(...compare(schema, next, at, context));
    // A new optional member of an output is what its readers are told to ignore.
    else if (input && rest === false && schema !== false)
      found.push({ pointer: at, detail: `${key} is no longer accepted` });
    // Where others were of one kind, whoever reads them all reads it too.
    else if (rest !== false) found.push(...compare(schema, rest, at, context));
  }
  const patterns = Object.entries((a["patternProperties"] ?? {}) as Record<string, Schema>);
  for (const [pattern, schema] of patterns) {
    const at = `${pointer}/patternProperties`;
    if (b["patternProperties"] === undefined && (input || rest !== false))
      found.push(...compare(schema, rest, at, context));
    for (const [key, next] of Object.entries(after))
      if (!Object.hasOwn(before, key) && new RegExp(pattern, "u").test(key))
        found.push(...compare(schema, next, memberOf(pointer, key), context));
  }
  const others = othersOf(a, "additionalProperties");
  if (others === false) return found;
  const anything = canonicalJson(others) === "{}" || others === true;
  for (const [key, schema] of Object.entries(after)) {
    if (Object.hasOwn(before, key)) continue;
    // A new optional member of an input is what nobody sent under that name; one that an output no longer describes may be anything.
    if (!(input && anything)) found.push(...compare(others, schema, memberOf(pointer, key), context));
  }
  const at = `${pointer}/additionalProperties`;
  if (rest !== false) found.push(...compare(others, rest, at, context));
  else if (input) found.push({ pointer: at, detail: "unknown members are no longer accepted" });
  return found;
}

function memberOf(pointer: string, key: string): string {
  return `${pointer}/properties/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function arrayBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  if (!types(a).includes("array")) return [];
  const [before, after] = [listOf(a["prefixItems"]), listOf(b["prefixItems"])];
  const rest = { before: othersOf(a, "items"), after: othersOf(b, "items") };
  const found = Array.from({ length: Math.max(before.length, after.length) }, (_, at) =>
    compare(before[at] ?? rest.before, after[at] ?? rest.after, `${pointer}/prefixItems/${at}`, context),
  );
  return [...found.flat(), ...compare(rest.before, rest.after, `${pointer}/items`, context)];
}

/**
 * Follows local references; words beside one hold too (2020-12, section 8.2.3). Taken together they may accept more than both do: what one
 * describes is no longer among the others of the other one. `exactly` keeps such ones apart.
 */
function resolve(schema: Schema, root: Schema, exactly?: "exactly"): Schema {
  let at = schema;
  const seen = new Set<Schema>();
  while (typeof at === "object" && !seen.has(at)) {
    seen.add(at);
    const { $ref, $dynamicRef, $defs: _defs, definitions: _old, ...beside } = at;
    // A contract's schema is one resource: there a dynamic reference has but one anchor to lead to.
    const reference = $ref ?? $dynamicRef;
    if (typeof reference !== "string") return at;
    const next = referred(decodeURIComponent(reference.slice(1)), root);
    if (next === undefined) return at;
    const whole = $ref !== undefined && $dynamicRef !== undefined ? { ...beside, $dynamicRef } : beside;
    const apart = exactly !== undefined && [whole, next].some(hasOthers);
    at = Object.keys(whole).length === 0 ? next : ((apart ? null : both(whole, next)) ?? { allOf: [next, whole] });
  }
  return at;
}

function hasOthers(schema: Schema): boolean {
  return typeof schema === "object" && (schema["additionalProperties"] ?? schema["items"]) !== undefined;
}

/** What a JSON pointer or an anchor names. */
function referred(fragment: string, root: Schema): Schema | undefined {
  let at: unknown = root;
  if (fragment !== "" && !fragment.startsWith("/")) at = anchored(fragment, root);
  else
    for (const part of fragment.split("/").slice(1))
      at = (at as SchemaObject | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  return (typeof at === "object" && at !== null) || typeof at === "boolean" ? (at as Schema) : undefined;
}

function anchored(name: string, at: unknown): unknown {
  if (typeof at !== "object" || at === null) return undefined;
  if ("$anchor" in at && at.$anchor === name) return at;
  if ("$dynamicAnchor" in at && at.$dynamicAnchor === name) return at;
  for (const part of Object.values(at)) {
    const found = anchored(name, part);
    if (found !== undefined) return found;
  }
  return undefined;
}

function listOf(value: unknown): Schema[] {
  return Array.isArray(value) ? (value as Schema[]) : [];
}

function verbOf({ side }: Comparison): string {
  return side === "input" ? "is no longer accepted" : "is new in the output";
}
