// What one JSON Schema says by itself: its types, and its values where they can be counted.
import { lists, maps, single } from "#contract/json-schema/keywords.ts";

export type SchemaObject = Record<string, unknown>;
export type Schema = boolean | SchemaObject;
export type Side = "input" | "output";

/** The finite set of values that a schema allows, or null. */
export function valuesOf(schema: SchemaObject): unknown[] | null {
  if (schema["const"] !== undefined) return [schema["const"]];
  if (Array.isArray(schema["enum"])) return schema["enum"];
  const values = types(schema).map((type) => (type === "boolean" ? [true, false] : type === "null" ? [null] : null));
  return values.includes(null) ? null : values.flat();
}

const ALL_TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

export function types(schema: SchemaObject): string[] {
  const { type, nullable } = schema as { type?: string | string[]; nullable?: boolean };
  if (type === undefined) return ALL_TYPES;
  const listed = Array.isArray(type) ? type : [type];
  return nullable === true ? [...listed, "null"] : listed;
}

const ANNOTATIONS = new Set([
  ...["$comment", "title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples", "example"],
]);

/** The schema without what is said about it (section 9): no value is refused for it. */
export function meaningOf(schema: unknown): Schema {
  if (typeof schema !== "object" || schema === null) return schema as Schema;
  const meaning: SchemaObject = {};
  for (const [word, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(word)) continue;
    if (single.has(word)) meaning[word] = meaningOf(value);
    else if (lists.has(word) && Array.isArray(value)) meaning[word] = value.map(meaningOf);
    else if (maps.has(word) && typeof value === "object" && value !== null)
      meaning[word] = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, meaningOf(one)]));
    else meaning[word] = value;
  }
  return meaning;
}
