// Regular expressions of manifests, in linear time: a hostile or careless pattern must not stop the process.
import { RE2JS } from "re2js";
import { EvaluationError } from "./errors.ts";

const cache = new Map<string, RE2JS>();
const MAX_CACHED = 500;

/** Compiles Python's syntax; look-around and back-references have no linear-time form and are refused by name. */
export function compileRegex(pattern: string): RE2JS {
  const known = cache.get(pattern);
  if (known) return known;
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch (error) {
    throw new EvaluationError(`the regular expression '${pattern}' is not supported: ${(error as Error).message}`);
  }
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(pattern, compiled);
  return compiled;
}
