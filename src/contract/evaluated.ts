// What Ajv's compiled checks remember of evaluated members, for `unevaluatedProperties`: as plain objects, where `constructor` is always one of
// them, and not always made before the first is noted. Both are put right in the code that it makes.

/** Ajv's option `code`. */
export const code = {
  process: (source: string): string =>
    source.includes("props")
      ? source
          .replace(/\b((?:var|let) props\d+ = |props\d+ \|\| )\{\}/g, "$1Object.create(null)")
          .replace(/(\bprops\d+)\[(key\d+)\] = true/g, "($1 ??= Object.create(null))[$2] = true")
      : source,
};
