// The keywords of JSON Schema 2020-12; those that hold other schemas (https://json-schema.org/draft/2020-12/json-schema-core#section-10) by how.

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

/** All of them, and OpenAPI's (https://spec.openapis.org/oas/v3.1#schema-object), which are annotations. */
export const keywords: ReadonlySet<string> = new Set([
  ...single,
  ...maps,
  ...lists,
  "contentSchema",
  "type",
  "enum",
  "const",
  "required",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minContains",
  "maxContains",
  "minProperties",
  "maxProperties",
  "dependentRequired",
  "title",
  "description",
  "default",
  "examples",
  "example",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentEncoding",
  "contentMediaType",
  "nullable",
  "discriminator",
  "xml",
  "externalDocs",
  "$ref",
  "$dynamicRef",
  "$anchor",
  "$dynamicAnchor",
  "$id",
  "$schema",
  "$comment",
  "$vocabulary",
]);
