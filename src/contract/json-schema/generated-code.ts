// What is put right in the code that Ajv makes of a schema.

/** V8 reads it at once, in brackets, not at the first call: of thousands of members in a row it may be too much to read, and takes a while. */
export function readAtOnce(source: string): string {
  return source.replace(/\breturn (function\b.*)$/s, "return ($1)");
}

/**
 * Ajv's option `code`. What the checks remember of evaluated members, for `unevaluatedProperties`, are plain objects, where `constructor` is
 * always one of them, and not always made before the first is noted.
 */
export const code = {
  process: (source: string): string =>
    readAtOnce(
      source.includes("props")
        ? source
            .replace(/\b((?:var|let) props\d+ = |props\d+ \|\| )\{\}/g, "$1Object.create(null)")
            .replace(/(\bprops\d+)\[(key\d+)\] = true/g, "($1 ??= Object.create(null))[$2] = true")
        : source,
    ),
};
