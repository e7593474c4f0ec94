// Whether rows of a table can be told apart by the key that a sync goes by.
import { MagicError } from "#contract/errors.ts";
import type { WritePlan } from "../../engine/destination.ts";
import { ident, type MysqlLink } from "./connect.ts";

/** Whether the table itself keeps exactly these columns unique. */
export async function hasUniqueKey(
  link: MysqlLink,
  database: string,
  name: string,
  key: readonly string[],
): Promise<boolean> {
  const rows = await link.rows(
    "SELECT index_name AS i, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR '\\0') AS c FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND non_unique = 0 GROUP BY index_name HAVING MAX(sub_part) IS NULL",
    [database, name],
  );
  const wanted = [...key].sort().join("\0");
  return rows.some(
    (row) =>
      (row["c"] ?? "")
        .split(/\0|\\0/)
        .sort()
        .join("\0") === wanted,
  );
}

/** An asked-for key that the table itself does not keep unique: of two rows nobody can tell which came last. Throws destination_refused. */
export async function checkKeys(link: MysqlLink, table: string, name: string, plan: WritePlan): Promise<void> {
  const key = plan.columns.filter((column) => plan.primaryKey.includes(column.name));
  const exactly = key.map((column) =>
    column.type.kind === "string"
      ? `CONVERT(${ident(column.name)} USING utf8mb4) COLLATE ${link.keyCollation}`
      : ident(column.name),
  );
  const [row] = await link.rows(
    `SELECT 1 AS doubled FROM ${table} GROUP BY ${exactly.join(", ")} HAVING count(*) > 1 LIMIT 1`,
  );
  if (row)
    throw new MagicError(
      "destination_refused",
      `Records of the same primary key were read, and ${name} has no unique key over ${plan.primaryKey.join(", ")} that would tell them: add one.`,
    );
}
