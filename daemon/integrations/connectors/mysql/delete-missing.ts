// The rows of a table whose keys a whole read did not bring: deleted, or marked as deleted.
import { DELETED_AT } from "../../engine/destination.ts";
import type { Value } from "../../engine/types.ts";
import type { MysqlTable } from "./catalog.ts";
import { ident, isMissing } from "./connect.ts";
import { deleteUnasked, referringTo, settle } from "./referring.ts";
import { type InsertTarget, insertRows } from "./write-rows.ts";

/**
 * `keys`: all that the source has; `inward`: the table, where its rows refer to each other: one may go before those that refer to it.
 * Gives how many rows are gone.
 */
export async function deleteMissing(
  target: InsertTarget,
  keys: AsyncIterable<readonly Value[][]>,
  inward: MysqlTable | null,
): Promise<number> {
  const { link, table, plan } = target;
  const names = plan.primaryKey.map(ident);
  // The key is part of the definition: an ALTER TABLE would commit the rows before the state.
  const make = (key: string) =>
    link.run(`CREATE TEMPORARY TABLE _magic_keys ${key} AS SELECT ${names.join(", ")} FROM ${table} LIMIT 0`);
  await make(`(PRIMARY KEY (${names.join(", ")}))`).catch(() => make(""));
  // A key that its column cannot hold is in no row here, and must not be cut to one that is. One that comes again is no error.
  const columns = plan.primaryKey.flatMap((name) => plan.columns.find((column) => column.name === name) ?? []);
  const into = { ...target, table: "_magic_keys", plan: { ...plan, columns }, left: [], marked: false };
  for await (const rows of keys) await insertRows(into, rows, (at) => at);
  const join = `${table} t LEFT JOIN _magic_keys k ON ${names.map((name) => `k.${name} = t.${name}`).join(" AND ")}`;
  const gone = isMissing(`k.${names[0]}`);
  const removal = `DELETE t FROM ${join} WHERE ${gone}`;
  let affected: number;
  if (plan.deletes === "soft")
    ({ affected } = await link.run(
      `UPDATE ${join} SET t.${ident(DELETED_AT)} = UTC_TIMESTAMP(6) WHERE ${gone} AND t.${ident(DELETED_AT)} IS NULL`,
    ));
  else if (inward) {
    affected = await deleteUnasked(link, removal);
    await settle(link, table, await referringTo(link, inward));
  } else ({ affected } = await link.run(removal));
  await link.run("DROP TEMPORARY TABLE _magic_keys");
  return affected;
}
