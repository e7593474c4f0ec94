// Where one JSON Schema (2020-12) refuses what another accepts. Errs on the side of naming a break: what it cannot compare counts as one
// when it changed.
import { canonicalJson } from "#contract/canonical-json.ts";
import { list } from "#contract/json-object.ts";
import { schemaErrors } from "#contract/json-schema/value-errors.ts";
import { boundBreaks } from "./bounds.ts";
import { asksForUnevaluated, EVALUATING, evaluatesAsMuch, isOpenEnded, othersOf } from "./evaluated.ts";
import { overlaps } from "./overlap.ts";
import { both, flat, refers, resolve, sumOf } from "./resolve.ts";
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
  const whole = b["allOf"] !== undefined && asksForUnevaluated(b) ? flat(b, context.roots.to) : null;
  if (whole) return compare(a, whole, pointer, context);
  const values = valuesOf(a);
  if (values) return refusedValues(values, b, context).map((text) => say(`${text} ${verbOf(context)}`));
  if (onlyBesideForms(a, b, pointer, context)) return [];
  const parts = formBreaks(a, b, pointer, context) ?? sumBreaks(a, b, pointer, context);
  if (parts) return parts;
  return [
    ...composed(a, b, pointer, context),
    ...typeBreaks(a, b, context).map(say),
    ...boundBreaks(a, b, context.side).map(say),
    ...objectBreaks(a, b, pointer, context),
    ...arrayBreaks(a, b, pointer, context),
  ];
}

/** Forms that stayed hold of both: what stands beside them may be all that changed, and break nothing. */
function onlyBesideForms(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): boolean {
  const { oneOf: before, ...restBefore } = a;
  const { oneOf: after, ...restAfter } = b;
  if (after === undefined || canonicalJson(before) !== canonicalJson(after)) return false;
  if (asksForUnevaluated(b) || hidesChange(after, context)) return false;
  return compare(restBefore, restAfter, pointer, context).length === 0;
}

/** What is offered is one of several forms: each must fit. Null where it is none. */
function formBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] | null {
  const word = ["anyOf", "oneOf"].find((one) => Array.isArray(a[one]));
  if (word === undefined) return null;
  const { [word]: forms, ...rest } = a;
  return list<Schema>(forms).flatMap((form) => {
    const whole = both(rest, resolve(form, context.roots.from));
    return whole ? compare(whole, b, pointer, context) : [{ pointer, detail: `${word} cannot be compared` }];
  });
}

/** What is offered is several parts at once. Null where it is not, or not to be taken together. */
function sumBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] | null {
  if (!Array.isArray(a["allOf"])) return null;
  const { allOf, ...rest } = a;
  const whole = sumOf([rest, ...list<Schema>(allOf).map((part) => resolve(part, context.roots.from))]);
  return whole ? compare(whole, b, pointer, context) : null;
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
  for (const part of list<Schema>(b["allOf"])) found.push(...compare(a, part, pointer, context));
  for (const word of ["anyOf", "oneOf"]) {
    const forms = list<Schema>(b[word]);
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

function hidesChange(part: unknown, context: Comparison): boolean {
  return !context.sameRoots && refers(canonicalJson(part));
}

/** `type: [string, null]` is what `anyOf` of a string and null says. */
function byType(schema: SchemaObject): SchemaObject[] {
  return Array.isArray(schema["type"]) ? schema["type"].map((type: unknown) => ({ ...schema, type })) : [schema];
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
  const definitions =
    typeof roots.to === "object" ? { $defs: roots.to["$defs"], definitions: roots.to["definitions"] } : {};
  try {
    const errorsOf = schemaErrors({ ...definitions, ...to });
    return values.filter((value) => errorsOf(value).length > 0).map((value) => JSON.stringify(value));
  } catch {
    return ["what was allowed"];
  }
}

function objectBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  if (!types(a).includes("object") || !types(b).includes("object")) return [];
  return [
    ...requiredBreaks(a, b, pointer, context),
    ...memberBreaks(a, b, pointer, context),
    ...patternBreaks(a, b, pointer, context),
    ...otherBreaks(a, b, pointer, context),
  ];
}

function requiredBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  const before = new Set(list(a["required"]).map(String));
  const added = list(b["required"]).filter((key) => !before.has(String(key)));
  const now = context.side === "input" ? "is required now" : "is no longer always there";
  return added.map((key) => ({ pointer: `${pointer}/required`, detail: `${key} ${now}` }));
}

/** Members that were described. */
function memberBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  const after = membersOf(b);
  const rest = othersOf(b, "additionalProperties");
  return Object.entries(membersOf(a)).flatMap(([key, schema]) => {
    const at = memberOf(pointer, key);
    const next = Object.hasOwn(after, key) ? after[key] : undefined;
    if (next !== undefined) return compare(schema, next, at, context);
    // Where others were of one kind, whoever reads them all reads it too.
    if (rest !== false) return compare(schema, rest, at, context);
    // A new optional member of an output is what its readers are told to ignore.
    if (context.side === "output" || schema === false) return [];
    return [{ pointer: at, detail: `${key} is no longer accepted` }];
  });
}

/** Members that a pattern described. */
function patternBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  const rest = othersOf(b, "additionalProperties");
  const left = b["patternProperties"] === undefined && (context.side === "input" || rest !== false);
  const added = addedMembers(a, b);
  const patterns = Object.entries((a["patternProperties"] ?? {}) as Record<string, Schema>);
  return patterns.flatMap(([pattern, schema]) => [
    ...(left ? compare(schema, rest, `${pointer}/patternProperties`, context) : []),
    ...added
      .filter(([key]) => new RegExp(pattern, "u").test(key))
      .flatMap(([key, next]) => compare(schema, next, memberOf(pointer, key), context)),
  ]);
}

/** Members that nothing described. */
function otherBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  const others = othersOf(a, "additionalProperties");
  if (others === false) return [];
  const input = context.side === "input";
  const anything = canonicalJson(others) === "{}" || others === true;
  // A new optional member of an input is what nobody sent under that name; one that an output no longer describes may be anything.
  const added = input && anything ? [] : addedMembers(a, b);
  const found = added.flatMap(([key, schema]) => compare(others, schema, memberOf(pointer, key), context));
  const at = `${pointer}/additionalProperties`;
  const rest = othersOf(b, "additionalProperties");
  if (rest !== false) found.push(...compare(others, rest, at, context));
  else if (input) found.push({ pointer: at, detail: "unknown members are no longer accepted" });
  return found;
}

function membersOf(schema: SchemaObject): Record<string, Schema> {
  return (schema["properties"] ?? {}) as Record<string, Schema>;
}

function addedMembers(a: SchemaObject, b: SchemaObject): [string, Schema][] {
  const before = membersOf(a);
  return Object.entries(membersOf(b)).filter(([key]) => !Object.hasOwn(before, key));
}

function memberOf(pointer: string, key: string): string {
  return `${pointer}/properties/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function arrayBreaks(a: SchemaObject, b: SchemaObject, pointer: string, context: Comparison): Break[] {
  if (!types(a).includes("array")) return [];
  const [before, after] = [list<Schema>(a["prefixItems"]), list<Schema>(b["prefixItems"])];
  const rest = { before: othersOf(a, "items"), after: othersOf(b, "items") };
  const found = Array.from({ length: Math.max(before.length, after.length) }, (_, at) =>
    compare(before[at] ?? rest.before, after[at] ?? rest.after, `${pointer}/prefixItems/${at}`, context),
  );
  return [...found.flat(), ...compare(rest.before, rest.after, `${pointer}/items`, context)];
}

function verbOf({ side }: Comparison): string {
  return side === "input" ? "is no longer accepted" : "is new in the output";
}
