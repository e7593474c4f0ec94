// Ajv for the schemas of contracts, with what it does otherwise than 2020-12 put right.
import { Ajv2020, type CodeKeywordDefinition, type Options } from "ajv/dist/2020.js";
import { constant, enumeration, uniqueItems } from "./equality.ts";
import { addFormats } from "./formats.ts";
import { multipleOf } from "./multiple-of.ts";
import { prefixItems } from "./prefix-items.ts";
import { properties } from "./properties.ts";
import { anchorsOf, toFragment } from "./references.ts";
import type { Schema } from "./walk.ts";

/** V8 reads it at once, in brackets, not at the first call: of thousands of members in a row it may be too much to read, and takes a while. */
function readAtOnce(source: string): string {
  return source.replace(/\breturn (function\b.*)$/s, "return ($1)");
}

/** Not for the words about what is unevaluated: see unevaluated.ts. */
export function openAjv({ code, ...options }: Options): Ajv2020 {
  const ajv = new Ajv2020({
    ...{ strict: false, logger: false, validateSchema: false },
    ...options,
    code: { process: readAtOnce, ...code },
  });
  // What Ajv notes for its own of those words.
  ajv.opts.unevaluated = false;
  const definitionOf = (keyword: string) => ajv.getKeyword(keyword) as CodeKeywordDefinition;
  const reference = byPlace(definitionOf("$ref").code);
  // A contract's schema is one resource, as an `$id` inside is refused: what is outermost in scope is the only one of its name.
  const own = { $ref: reference, $dynamicRef: reference, enum: enumeration, const: constant };
  const many = { properties: properties(definitionOf("properties").code) };
  for (const [keyword, ownCode] of Object.entries({ ...own, ...many, multipleOf, prefixItems, uniqueItems }))
    definitionOf(keyword).code = ownCode;
  return addFormats(ajv);
}

/** Ajv looks for names neither at the root nor in `prefixItems`. */
function byPlace(code: CodeKeywordDefinition["code"]): CodeKeywordDefinition["code"] {
  return (context) => {
    const place = anchorsOf(context.it.schemaEnv.root.schema as Schema).get(context.schema.slice(1));
    code(place === undefined ? context : Object.create(context, { schema: { value: toFragment(place) } }));
  };
}
