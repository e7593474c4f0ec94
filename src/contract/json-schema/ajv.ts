// Ajv for the schemas of contracts, with what it does otherwise than 2020-12 put right.
import { Ajv2020, type KeywordDefinition, type Options } from "ajv/dist/2020.js";
import { constant, enumeration, uniqueItems } from "./equality.ts";
import { addFormats } from "./formats.ts";
import { multipleOf } from "./multiple-of.ts";
import { prefixItems } from "./prefix-items.ts";

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
  // What it notes for its own of those words.
  ajv.opts.unevaluated = false;
  // A contract's schema is one resource, as an `$id` inside is refused: what is outermost in scope is the only one of its name.
  const dynamicRef = { ...(ajv.getKeyword("$ref") as KeywordDefinition), keyword: "$dynamicRef" };
  for (const own of [multipleOf, enumeration, constant, prefixItems, uniqueItems, dynamicRef])
    ajv.removeKeyword(String(own.keyword)).addKeyword(own);
  return addFormats(ajv);
}
