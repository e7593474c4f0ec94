// Keywords of JSON Schema 2020-12 that hold other schemas (https://json-schema.org/draft/2020-12/json-schema-core#section-10), by how.

/** One schema. */
export const single: ReadonlySet<string> = new Set([
  ...["not", "if", "then", "else", "items", "contains", "propertyNames"],
  ...["additionalProperties", "unevaluatedProperties", "unevaluatedItems"],
]);

/** A map of names to schemas: the names are no keywords. `definitions` is an earlier draft's. */
export const maps: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"],
]);

/** A list of schemas. */
export const lists: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
