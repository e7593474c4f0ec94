// Columns that the destination's table computes itself: where the source's value is another one, the row cannot be kept as it is.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "../../engine/destination.ts";
import type { PostgresLink } from "./connect.ts";
import { ident } from "./sql.ts";

interface ComputingTable {
  readonly link: PostgresLink;
  /** Quoted. */
  readonly table: string;
  readonly plan: Pick<WritePlan, "primaryKey">;
  /** Columns of the plan that the table computes itself. */
  readonly generated: readonly string[];
}

/** Takes the rows out of `from` (a table of ours) whose value differs from what the table will compute; they are rejects. */
export async function takeOutMiscomputed(target: ComputingTable, from: string): Promise<Reject[]> {
  const { link, table, plan, generated } = target;
  const rejects: Reject[] = [];
  for (const name of generated) {
    const [found] = await link.rows<{ expression: string; type: string }>(
      "SELECT pg_get_expr(d.adbin, d.adrelid) AS expression, format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = $1::regclass AND a.attname = $2 AND a.attgenerated <> ''",
      [table, name],
    );
    if (!found) continue;
    const key =
      plan.primaryKey.length > 0
        ? `concat_ws(',', ${plan.primaryKey.map((one) => `${ident(one)}::text`).join(", ")})`
        : "'?'";
    await link.run("SAVEPOINT magic_computed");
    try {
      // As texts: json and its like have no equality.
      const gone = await link.rows<{ key: string }>(
        `DELETE FROM ${from} WHERE ${ident(name)}::text IS DISTINCT FROM (${found.expression})::${found.type}::text RETURNING ${key} AS key`,
      );
      for (const row of gone)
        rejects.push({ key: row.key, column: name, reason: "the table there computes another value for this column" });
      await link.run("RELEASE SAVEPOINT magic_computed");
    } catch (error) {
      // The expression fails for some row: so will its insertion, which tells the row.
      await link.run("ROLLBACK TO SAVEPOINT magic_computed; RELEASE SAVEPOINT magic_computed");
      if (!/^22/.test((error as { code?: string }).code ?? "")) throw error;
    }
  }
  return rejects;
}
