// After the last row of a table that this run made: its keys, indexes and constraints. Rows that these refuse are taken out.
import type { Reject } from "#contract/sync.ts";
import { DELETED_AT, type WritePlan } from "../../engine/destination.ts";
import { outlived } from "../../engine/keys.ts";
import type { TableInfo } from "./catalog.ts";
import type { PostgresLink } from "./connect.ts";
import { isDataError } from "./errors.ts";
import { takeOutDuplicates } from "./merge.ts";
import type { Loading } from "./prepare.ts";
import { sift } from "./sift.ts";
import { ident, identList } from "./sql.ts";
import { copyIndexes, isTaken, noRenames, type Renames } from "./swap.ts";

export interface MadeTable {
  readonly link: PostgresLink;
  readonly target: { readonly schema: string; readonly name: string };
  readonly existing: TableInfo | null;
  readonly plan: WritePlan;
  readonly loading: Loading;
  waiting(what: string): void;
}

export async function finishTable(made: MadeTable): Promise<{ renames: Renames; rejects: readonly Reject[] }> {
  const { link, plan, loading } = made;
  let rejects: readonly Reject[] = [];
  let renames = noRenames;
  // Under a savepoint: true when it was done, false when rows stand in its way.
  const built = async () => {
    await link.run("SAVEPOINT magic_keys");
    try {
      renames = await build(made);
      await link.run("RELEASE SAVEPOINT magic_keys");
      return true;
    } catch (error) {
      if (!isDataError(error) || plan.onBadRecord === "fail") throw error;
      await link.run("ROLLBACK TO SAVEPOINT magic_keys; RELEASE SAVEPOINT magic_keys");
      return false;
    }
  };
  if (await built()) return { renames, rejects };
  if (plan.primaryKey.length > 0) {
    rejects = await takeOutDuplicates(link, loading.table, plan);
    if (await built()) return { renames, rejects };
  }
  // Something else than the key: the rows go aside and come in again, into the finished table.
  const names = [...plan.columns.map(({ name }) => name), ...(plan.deletes === "soft" ? [DELETED_AT] : [])];
  const refused = await sift({
    link,
    plan,
    rows: `SELECT ${identList(names)} FROM ${loading.table}`,
    begin: async () => {
      await link.run(`TRUNCATE ${loading.table}`);
      renames = await build(made);
    },
    put: async (from) => {
      await link.run(
        `INSERT INTO ${loading.table} (${identList(names)}) OVERRIDING SYSTEM VALUE SELECT ${identList(names)} FROM ${from} s`,
      );
      await link.run("SET CONSTRAINTS ALL IMMEDIATE");
    },
    waiting: made.waiting,
  });
  return { renames, rejects: [...rejects, ...refused] };
}

async function build({ link, target, existing, plan, loading }: MadeTable): Promise<Renames> {
  const key = plan.primaryKey;
  const swapped = loading.how === "shadow" && existing !== null && !loading.stays;
  const keeps = swapped && existing.primaryKey.length > 0 && !outlived(existing.primaryKey, plan);
  const renames = swapped ? await copyIndexes(link, existing.oid, loading.table, keeps) : noRenames;
  if (key.length === 0 || keeps) return renames;
  const ours = loading.how === "shadow" ? keyName(loading.name) : await freeName(link, target);
  await link.run(`ALTER TABLE ${loading.table} ADD CONSTRAINT ${ident(ours)} PRIMARY KEY (${identList(key)})`);
  return loading.how === "shadow" ? { ...renames, key: [ours, keyName(target.name)] } : renames;
}

// The usual name of a primary key's index, unless something else has it.
async function freeName(link: PostgresLink, target: MadeTable["target"]): Promise<string> {
  const name = keyName(target.name);
  return (await isTaken(link, target.schema, name)) ? `_magic_${Date.now().toString(36)}_pkey` : name;
}

// PostgreSQL's own way to fit a name into 63 bytes: the table's name is cut, between characters.
function keyName(table: string): string {
  let name = table;
  while (Buffer.byteLength(name) > 58) name = [...name].slice(0, -1).join("");
  return `${name}_pkey`;
}
