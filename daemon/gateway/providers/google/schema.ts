// JSON schemas for Gemini, which passes over what it does not know: `const` is among that, and is said as an `enum` of one. References it follows
// to the root's `$defs` alone, and it refuses what stands beside them.
import { isObject } from "#contract/json-object.ts";
import { maps } from "#contract/json-schema/keywords.ts";
import { pointed, type Schema } from "../json-schema.ts";

/** Keywords whose value is a value. */
const values = new Set(["enum", "default", "examples"]);

/** References to what holds others copy those as often: definitions come to no more than so many times the schema. */
const MOST_COPIES = 4;

/** Gives what a reference points at a name; null where it points at nothing. */
type Refer = (reference: string) => string | null;

/** The same schema where no `const` and no reference stands in it: making a large one anew takes long. */
export function geminiSchema(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const text = JSON.stringify(schema);
  if (!/"(const|\$ref)":/.test(text)) return schema;
  const names = new Map<string, string>();
  const refer: Refer = (reference) => {
    if (!names.has(reference)) {
      if (!/^#(\/|$)/.test(reference) || !isObject(pointed(schema, reference))) return null;
      names.set(reference, nameOf(reference, names.size));
    }
    return `#/$defs/${names.get(reference)}`;
  };
  const { $defs: _defs, definitions: _definitions, ...root } = schema;
  const made = rewritten(root, refer) as Schema;
  const definitions: [string, unknown][] = [];
  let room = MOST_COPIES * text.length;
  // Grows while what it holds refers to more.
  for (const [reference, name] of names) {
    const target = pointed(schema, reference);
    if (room > 0) room -= JSON.stringify(target).length;
    definitions.push([name, room > 0 ? rewritten(target, refer) : {}]);
  }
  return definitions.length > 0 ? { ...made, $defs: Object.fromEntries(definitions) } : made;
}

function nameOf(reference: string, number: number): string {
  const own = /^#\/\$defs\/([\w-]+)$/.exec(reference)?.[1];
  return own ?? `${/\/([\w-]+)$/.exec(reference)?.[1] ?? "root"}__${number}`;
}

function rewritten(node: unknown, refer: Refer): unknown {
  if (Array.isArray(node)) return node.map((item) => rewritten(item, refer));
  if (!isObject(node)) return node;
  const { $ref: reference, description, default: usual } = node;
  const $ref = typeof reference === "string" ? refer(reference) : null;
  if ($ref)
    return { $ref, ...(description ? { description } : {}), ...(usual === undefined ? {} : { default: usual }) };
  const made: [string, unknown][] = [];
  for (const [key, value] of Object.entries(node)) {
    if (key === "$ref") continue;
    if (key === "const" && (typeof value === "string" || typeof value === "number")) {
      made.push(["enum", [value]]);
      if (node["type"] === undefined) made.push(["type", typeof value]);
    } else if (maps.has(key) && isObject(value)) {
      made.push([key, Object.fromEntries(Object.entries(value).map(([one, child]) => [one, rewritten(child, refer)]))]);
    } else made.push([key, values.has(key) || key === "const" ? value : rewritten(value, refer)]);
  }
  return Object.fromEntries(made);
}
