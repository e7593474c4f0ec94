// How long checking against a schema may take: most schemas look at each part of a value once; patterns, and forms that refer back to
// themselves, may look at it a number of times that only they know.
import type { Schema } from "./versions/schema.ts";

export type Cost =
  /** In proportion to the value. */
  | "linear"
  /** Nobody knows, but not long for a value of a few characters. */
  | "small when tiny"
  | "unknown";

/** Words that apply several schemas to one value, or an expression to a text, or calculate. */
const COSTLY =
  /"(pattern|patternProperties|format|anyOf|oneOf|allOf|not|if|contains|dependentSchemas|unevaluated\w+|multipleOf|\$ref|\$dynamicRef)"/;

/** Takes the schema's text, where a property of such a name counts as the word: too careful rather than not enough. */
export function costOf(schema: Schema): Cost {
  const text = JSON.stringify(schema);
  if (!COSTLY.test(text)) return "linear";
  if (/"\$(ref|dynamicRef)"/.test(text) || text.includes('"patternProperties"')) return "unknown";
  return patternsOf(schema).every(isSimple) ? "small when tiny" : "unknown";
}

/** One way, or a few, to match a text: no groups and at most three loops. */
function isSimple(pattern: unknown): boolean {
  return typeof pattern === "string" && !pattern.includes("(") && (pattern.match(/[*+?{]/g) ?? []).length <= 3;
}

function patternsOf(schema: unknown): unknown[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([word, part]) =>
    word === "pattern" && typeof part === "string" ? [part] : patternsOf(part),
  );
}

const TINY_PARTS = 50;
const TINY_TEXT = 64;

/** A few members, and a few characters in all. */
export function isTiny(value: unknown): boolean {
  const left = { parts: TINY_PARTS, text: TINY_TEXT };
  const visit = (part: unknown): boolean => {
    if (--left.parts < 0) return false;
    if (typeof part === "string") {
      left.text -= part.length;
      return left.text >= 0;
    }
    if (typeof part !== "object" || part === null) return true;
    for (const key in part) if (!visit((part as Record<string, unknown>)[key])) return false;
    return true;
  };
  return visit(value);
}
