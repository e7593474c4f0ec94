// The proof's checksum: a sum of one hash per row, so the order of rows means nothing, and one changed value is seen.

/** SQL that gives `n` and `checksum` (text) over the columns' expressions, in one scan. `types`: the expressions'. */
export function checksumSql(
  from: string,
  expressions: readonly string[],
  types: readonly string[],
  condition = "",
): string {
  const values = expressions.map((expression, at) => byBytes(expression, types[at] ?? ""));
  // hash_record_extended hashes each column with its type's own hash function: no text is made.
  return `SELECT count(*)::text AS n, coalesce(sum(hash_record_extended(ROW(${values.join(", ")}), 0)), 0)::text AS checksum FROM ${from}${condition}`;
}

// A collation that is not deterministic hashes what it takes for equal alike, and the other end's may be another one.
function byBytes(expression: string, type: string): string {
  return /^(text|name|bpchar|character( varying)?)(\(\d+\))?(\[\])*$/.test(type)
    ? `${expression} COLLATE "C"`
    : expression;
}
