// JSON schemas for Anthropic's structured outputs, which keep less than OpenAI's: objects must be closed, may not refer to themselves, and have
// few optional members; limits of numbers, strings and lists are refused. What cannot be said natively goes by a forced tool; limits are
// told to the model in the description, since a refusal would help nobody.
import { list } from "#contract/json-object.ts";
import { maps } from "#contract/json-schema/keywords.ts";
import { pointed, type Schema } from "../json-schema.ts";

/** Beyond some ten optional members the service's grammar does not compile. */
const MAX_OPTIONAL = 10;
/** Members with more than one type, likewise. */
const MAX_UNIONS = 16;
/** Strict tools of a request. */
const MAX_STRICT = 20;
const MAX_DEPTH = 60;
/** Nodes looked at for one request, ten members as one more: references to references multiply without end, and so do wide ones. */
const MAX_NODES = 20_000;

/** Limits that the service refuses; `minItems` of 0 and 1 it takes. */
const limits = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
]);

/** Formats of strings that the service keeps. */
const formats = new Set(["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]);

/** What it can neither keep nor be told in words. */
const unsaid = new Set([
  "not",
  "if",
  "then",
  "else",
  "patternProperties",
  "propertyNames",
  "dependentSchemas",
  "dependentRequired",
  "prefixItems",
  "contains",
  "unevaluatedProperties",
]);

interface Count {
  schemas: number;
  optional: number;
  unions: number;
  /** The same for all schemas of a request. */
  readonly nodes: { left: number };
}

/** Says of one schema of a request after the other whether the service can keep it without losing what it says: its limits hold for all of them. */
export function schemaKeeper(): (schema: Schema) => boolean {
  let taken: Count = { schemas: 0, optional: 0, unions: 0, nodes: { left: MAX_NODES } };
  return (schema) => {
    if (taken.schemas === MAX_STRICT) return false;
    const count = { ...taken, schemas: taken.schemas + 1 };
    const keeps = closes(schema, schema, [], count, 0) && count.optional <= MAX_OPTIONAL && count.unions <= MAX_UNIONS;
    if (keeps) taken = count;
    return keeps;
  };
}

function closes(node: unknown, root: Schema, path: readonly unknown[], count: Count, depth: number): boolean {
  if (typeof node !== "object" || node === null) return true;
  const width = Array.isArray(node) ? node.length : Object.keys(node).length;
  count.nodes.left -= 1 + Math.floor(width / 10);
  if (depth > MAX_DEPTH || count.nodes.left < 0 || path.includes(node)) return false;
  if (Array.isArray(node)) return node.every((item) => closes(item, root, path, count, depth + 1));
  const schema = node as Record<string, unknown>;
  const properties = schema["properties"];
  const named = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const extra = schema["additionalProperties"];
  if (extra !== undefined && extra !== false) return false;
  if (describesObject(schema) && named.length === 0 && extra !== false) return false;
  if (Object.keys(schema).some((key) => unsaid.has(key))) return false;
  if (Array.isArray(schema["type"]) || schema["anyOf"] || schema["oneOf"]) count.unions++;
  const required = new Set(list(schema["required"]));
  count.optional += named.filter((name) => !required.has(name)).length;
  const reference = schema["$ref"];
  if (typeof reference === "string" && !closes(pointed(root, reference), root, [...path, node], count, depth + 1))
    return false;
  return Object.entries(schema).every(([key, value]) => {
    if (key === "$defs" || key === "definitions" || key === "const" || key === "enum" || key === "default") return true;
    const children = maps.has(key) && typeof value === "object" && value !== null ? Object.values(value) : value;
    return closes(children, root, [...path, node], count, depth + 1);
  });
}

/** The schema with every object closed and with its limits told in words. */
export function nativeSchema(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(nativeSchema);
  if (typeof node !== "object" || node === null) return node;
  const kept: Record<string, unknown> = {};
  const told: string[] = [];
  for (const [key, value] of Object.entries(node)) {
    if (limits.has(key) || (key === "minItems" && Number(value) > 1) || isForeign(key, value))
      told.push(`${key}: ${JSON.stringify(value)}`);
    else if (maps.has(key) && typeof value === "object" && value !== null) {
      kept[key] = Object.fromEntries(Object.entries(value).map(([name, child]) => [name, nativeSchema(child)]));
    } else if (key === "oneOf") kept["anyOf"] = nativeSchema(value);
    else kept[key] = key === "const" || key === "enum" || key === "default" ? value : nativeSchema(value);
  }
  const said = inWords(kept, told);
  return describesObject(said) ? { ...said, additionalProperties: false } : said;
}

/** The schema of a tool's input, in which the service refuses these three at the top level: there they are told in words. */
export function inputSchema(schema: Schema): Schema {
  if (!("anyOf" in schema || "oneOf" in schema || "allOf" in schema)) return schema;
  const { anyOf, oneOf, allOf, ...kept } = schema;
  const ways = Object.entries({ anyOf, oneOf, allOf }).filter(([, value]) => value !== undefined);
  return inWords(
    kept,
    ways.map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
  );
}

/** What the service refuses, told to the model. */
export function inWords(schema: Schema, told: readonly string[]): Schema {
  if (told.length === 0) return schema;
  const said = typeof schema["description"] === "string" ? `${schema["description"]} ` : "";
  return { ...schema, description: `${said}(${told.join(", ")})` };
}

function describesObject(schema: Schema): boolean {
  const type = schema["type"];
  return type === "object" || (Array.isArray(type) ? type.includes("object") : !type && Boolean(schema["properties"]));
}

// Formats that it does not know, and patterns with more than its regular expressions have.
function isForeign(key: string, value: unknown): boolean {
  if (key === "format") return !formats.has(String(value));
  return key === "pattern" && /\(\?(?!:)|\\[bB1-9]/.test(String(value));
}
