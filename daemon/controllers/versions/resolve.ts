// What a schema comes to that refers to others or stands in several parts.
import { canonicalJson } from "#contract/canonical-json.ts";
import { list } from "#contract/json-object.ts";
import { pointerParts, valueAt } from "#contract/json-pointer.ts";
import type { Schema, SchemaObject } from "./schema.ts";

/**
 * Follows local references; words beside one hold too (2020-12, section 8.2.3). Taken together they may accept more than both do: what one
 * describes is no longer among the others of the other one. `exactly` keeps such ones apart.
 */
export function resolve(schema: Schema, root: Schema, exactly?: "exactly"): Schema {
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
  const isPointer = fragment === "" || fragment.startsWith("/");
  const at = isPointer ? valueAt(root, pointerParts(fragment)) : anchored(fragment, root);
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

/** Both at once, where no word stands in both with another meaning; null where that is not known. */
export function both(one: Schema, other: Schema): Schema | null {
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

/** The parts of `allOf` and what stands beside it, as one; null where that might not be the same. */
export function flat(schema: SchemaObject, root: Schema): Schema | null {
  const { allOf, ...rest } = schema;
  const parts = [rest, ...list<Schema>(allOf).map((part) => resolve(part, root, "exactly"))];
  return parts.some(hasOthers) ? null : sumOf(parts);
}

/** Several at once; null where that is not known. */
export function sumOf(parts: readonly Schema[]): Schema | null {
  return parts.reduce<Schema | null>((sum, part) => (sum === null ? null : both(sum, part)), true);
}

export function refers(text: string): boolean {
  return /"\$(dynamicR|recursiveR|r)ef"/.test(text);
}
