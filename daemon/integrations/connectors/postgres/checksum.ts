// The proof's checksum: a sum of one hash per row, so the order of rows means nothing, and one changed value is seen.

/** SQL that gives `n` and `checksum` (text) over the columns' expressions, in one scan. */
export function checksumSql(from: string, expressions: readonly string[], condition = ""): string {
  // hash_record_extended hashes each column with its type's own hash function: no text is made.
  return `SELECT count(*)::text AS n, coalesce(sum(hash_record_extended(ROW(${expressions.join(", ")}), 0)), 0)::text AS checksum FROM ${from}${condition}`;
}
