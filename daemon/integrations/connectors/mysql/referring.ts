// Rows of other tables that refer to those of a table that is filled anew. Its old rows go for the sake of the new ones: what their
// foreign keys say of deleted rows is meant for those alone that do not come back.
import { MagicError } from "#contract/errors.ts";
import type { MysqlTable } from "./catalog.ts";
import { ident, isMissing, type MysqlLink } from "./connect.ts";

export interface Referring {
  /** Quoted, as are the columns. */
  readonly table: string;
  readonly columns: readonly { readonly own: string; readonly referred: string }[];
  readonly rule: string;
}

const NAMED = "k.referenced_table_schema = ? AND k.referenced_table_name = ?";

/** The foreign keys that name the table, its own among them, as far as the user may see them. */
export const referringTo = (link: MysqlLink, { database, name }: MysqlTable) => keysBy(link, NAMED, [database, name]);

/** Those of its own: servers find them without a look at all other tables. */
export const referringToItself = (link: MysqlLink, { database, name }: MysqlTable) =>
  keysBy(link, `${NAMED} AND k.table_schema = ? AND k.table_name = ?`, [database, name, database, name]);

async function keysBy(link: MysqlLink, which: string, parameters: readonly string[]): Promise<readonly Referring[]> {
  const rows = await link.rows(
    `SELECT k.constraint_schema AS s, k.constraint_name AS c, k.table_schema AS d, k.table_name AS t, k.column_name AS own, k.referenced_column_name AS referred, r.delete_rule AS rule
       FROM information_schema.key_column_usage k LEFT JOIN information_schema.referential_constraints r ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name
      WHERE ${which} ORDER BY 1, 2, 4, k.ordinal_position`,
    parameters,
  );
  const keys = Map.groupBy(rows, ({ s, c, t }) => JSON.stringify([s, c, t]));
  const found: Referring[] = [];
  for (const columns of keys.values()) {
    const { d, t, c, rule } = columns[0] ?? {};
    const table = `${ident(d ?? "")}.${ident(t ?? "")}`;
    found.push({
      table,
      columns: columns.map((row) => ({ own: ident(row["own"] ?? ""), referred: ident(row["referred"] ?? "") })),
      rule: rule ?? (await writtenRule(link, table, c ?? "")),
    });
  }
  return found;
}

// MariaDB keeps the rules from users without a privilege on the whole database; the definition is for all who see the columns.
async function writtenRule(link: MysqlLink, table: string, constraint: string): Promise<string> {
  const [row] = await link.rows(`SHOW CREATE TABLE ${table}`);
  const lines = (row?.["Create Table"] ?? "").split("\n");
  const line = lines.find((one) => one.trimStart().startsWith(`CONSTRAINT ${ident(constraint)} FOREIGN KEY `));
  return /\) ON DELETE (CASCADE|SET NULL)(?: ON UPDATE [A-Z ]+)?,?$/.exec(line ?? "")?.[1] ?? "RESTRICT";
}

/** Deletes rows, and leaves those that refer to them as they are: until `settle`, or until they have come again. */
export async function deleteUnasked(link: MysqlLink, removal: string): Promise<number> {
  await link.run("SET SESSION foreign_key_checks = 0");
  try {
    return (await link.run(removal)).affected;
  } finally {
    await link.run("SET SESSION foreign_key_checks = 1");
  }
}

/** Once the new rows are there, or the old ones gone: does what each foreign key says of rows that have gone. @throws MagicError where it forbids that. */
export async function settle(link: MysqlLink, table: string, referring: readonly Referring[]): Promise<void> {
  for (const { table: other, columns, rule } of referring) {
    const same = columns.map(({ own, referred }) => `p.${referred} = c.${own}`).join(" AND ");
    const join = `${other} c LEFT JOIN ${table} p ON ${same}`;
    const left = [isMissing(`p.${columns[0]?.referred}`), ...columns.map(({ own }) => `c.${own} IS NOT NULL`)].join(
      " AND ",
    );
    // Most often nothing has: who may not write there need not.
    const [gone] = await link.rows(`SELECT 1 AS there FROM ${join} WHERE ${left} LIMIT 1 LOCK IN SHARE MODE`);
    if (!gone) continue;
    const nulls = columns.map(({ own }) => `c.${own} = NULL`).join(", ");
    if (rule === "CASCADE") await link.run(`DELETE c FROM ${join} WHERE ${left}`);
    else if (rule === "SET NULL") await link.run(`UPDATE ${join} SET ${nulls} WHERE ${left}`);
    else
      throw new MagicError(
        "destination_refused",
        `Rows have gone at the source that ${other} still refers to: remove those first, or use --deletes soft.`,
      );
  }
}
