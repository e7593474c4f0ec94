// What one JSON Schema says by itself: its types, and its values where they can be counted.

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
