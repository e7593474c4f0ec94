// What is looked for in every schema of a contract by itself: keywords and formats that nobody knows, dialects, patterns, references.
import { brief } from "../check.ts";
import { nearest } from "../suggest.ts";
import { formatNames } from "./compilers.ts";
import { keywords } from "./keywords.ts";
import { checkPattern } from "./pattern.ts";
import { checkReference } from "./references.ts";
import { remembered } from "./remembered.ts";
import type { Add, Schema } from "./walk.ts";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

const keywordMeant = remembered((key) => nearest(key, keywords));
const formatMeant = remembered((name) => {
  const names = formatNames();
  const letters = (text: string) => [...text.toLowerCase().replace(/[-_ ]/g, "")].sort().join("");
  return names.includes(name) ? undefined : names.find((known) => letters(known) === letters(name));
});

/** `root`: the whole schema, which stands at `base`. */
export function checkSubschema(node: Schema, at: string, root: Schema, base: string, add: Add): void {
  for (const key of Object.keys(node)) {
    if (keywords.has(key)) continue;
    const near = keywordMeant(key);
    if (near) add(at, key, "unknown_keyword", `JSON Schema has no keyword \`${key}\`.`, `Did you mean \`${near}\`?`);
  }
  // Ajv's own word: such a check answers with a promise, which counts as a value that fits, and whose refusal nobody hears.
  if ("$async" in node)
    add(at, "$async", "unknown_keyword", "JSON Schema has no keyword `$async`.", "Remove it.", node["$async"]);
  if (typeof node["format"] === "string") format(node["format"], at, add);
  const dialect = node["$schema"];
  if (typeof dialect === "string" && dialect.replace(/#$/, "") !== DIALECT)
    add(
      at,
      "$schema",
      "schema_dialect",
      `The dialect ${JSON.stringify(brief(dialect))} is not supported.`,
      `Remove $schema, or use ${DIALECT}.`,
      dialect,
    );
  if (typeof node["$id"] === "string" && at !== base)
    add(
      at,
      "$id",
      "schema_id",
      "An $id inside a contract's schema is not supported.",
      "Remove it, and refer with `#/...`.",
      node["$id"],
    );
  for (const key of ["$ref", "$dynamicRef"])
    if (typeof node[key] === "string") checkReference(node[key], key, at, root, add);
  if (typeof node["pattern"] === "string") pattern(node["pattern"], at, "pattern", add);
  const named = node["patternProperties"];
  if (typeof named === "object" && named !== null)
    for (const key of Object.keys(named)) pattern(key, `${at}/patternProperties`, key, add);
}

// Other names (`ulid`) are annotations, as JSON Schema says; one whose letters were swapped would check nothing, silently.
function format(name: string, at: string, add: Add): void {
  const meant = formatMeant(name);
  if (meant)
    add(at, "format", "unknown_format", `There is no format \`${brief(name)}\`.`, `Did you mean \`${meant}\`?`, name);
}

function pattern(text: string, at: string, key: string, add: Add): void {
  const problem = checkPattern(text);
  if (!problem) return;
  const fix =
    problem.code === "pattern_invalid"
      ? "Correct the regular expression (ECMA-262, flag u)."
      : "Write it without a loop inside a loop, or without two ways to match the same text.";
  add(at, key, problem.code, problem.message, fix, text);
}
