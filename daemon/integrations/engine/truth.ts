// The words that PostgreSQL takes for booleans: texts of files for columns of other databases too.
const words = new Map(
  [
    ["true", "t", "yes", "y", "on"],
    ["false", "f", "no", "n", "off"],
  ].flatMap((same, at) => same.map((word) => [word, at === 0 ? "true" : "false"] as const)),
);

/** `true` or `false` for a word of either; undefined for any other text. */
export const truthOf = (text: string): "true" | "false" | undefined => words.get(text.toLowerCase());
