// What `unevaluatedProperties` and `unevaluatedItems` are about depends on what stands beside them (2020-12, section 11).
import { canonicalJson } from "#contract/canonical-json.ts";
import type { Schema, SchemaObject } from "./schema.ts";

const IN_PLACE = [
  ...["$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"],
  ...["dependentSchemas", "dependencies", "contains"],
];
/** What of a schema, besides its own words for members and items, decides what is left for the unevaluated ones. */
export const EVALUATING: Readonly<Record<string, readonly string[]>> = {
  unevaluatedProperties: [...IN_PLACE, "properties", "patternProperties", "additionalProperties"],
  unevaluatedItems: [...IN_PLACE, "prefixItems", "items"],
};

/** Whether other schemas have a say in what the word is about; where none has, it is another `additionalProperties` or `items`. */
export function isOpenEnded(schema: SchemaObject, word: string): boolean {
  return schema[word] !== undefined && IN_PLACE.some((one) => schema[one] !== undefined);
}

export function evaluatesAsMuch(word: string, from: unknown, to: unknown): boolean {
  if (word === "properties") return Object.keys(from ?? {}).every((key) => Object.hasOwn(to ?? {}, key));
  return canonicalJson(from) === canonicalJson(to);
}

/** What members, or items, that a schema does not describe one by one have to be. */
export function othersOf(schema: SchemaObject, word: "additionalProperties" | "items"): Schema {
  const unevaluated = word === "items" ? "unevaluatedItems" : "unevaluatedProperties";
  return (schema[word] ?? (isOpenEnded(schema, unevaluated) ? true : schema[unevaluated]) ?? true) as Schema;
}

export function asksForUnevaluated(schema: SchemaObject): boolean {
  return Object.keys(EVALUATING).some((word) => schema[word] !== undefined);
}
