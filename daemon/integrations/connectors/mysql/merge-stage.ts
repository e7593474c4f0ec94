// Upserts into a table that has columns of its own and no unique key over ours: rows go into a temporary table, and from there each into
// the row of its key. Only where several rows have one key are they deleted, and become one.
import type { Reject } from "#contract/sync.ts";
import { DELETED_AT, type WritePlan, type WriteResult } from "../../engine/destination.ts";
import { keyedRows, lastOfEach } from "../../engine/keys.ts";
import type { Row } from "../../engine/types.ts";
import type { MysqlTable } from "./catalog.ts";
import { ident, type MysqlLink } from "./connect.ts";
import { isRowError } from "./errors.ts";
import { type InsertTarget, insertRows, placeIn, shownKey } from "./write-rows.ts";

/** True where rows hold what nobody would bring again, were they deleted. */
export function hasOwnColumns({ columns }: MysqlTable, plan: WritePlan): boolean {
  return columns.some(
    ({ name, generated }) => !generated && name !== DELETED_AT && plan.columns.every((column) => column.name !== name),
  );
}

export interface Stage {
  /** Quoted: the plan's columns as the table has them, and `_magic_n`. */
  readonly rows: string;
  /** Quoted: of each row's number how many rows the table has of its key. */
  readonly found: string;
}

/** Both last as long as the connection. */
export async function makeStage(link: MysqlLink, there: MysqlTable, table: string, plan: WritePlan): Promise<Stage> {
  const [rows, found] = ["_magic_stage", "_magic_found"].map((name) => `${ident(there.database)}.${name}`) as [
    string,
    string,
  ];
  // An index holds 3,072 bytes, and of texts only so many characters.
  const most = Math.floor(700 / plan.primaryKey.length);
  const places = plan.primaryKey.map((name) => {
    const declared = there.columns.find((column) => column.name === name)?.declared ?? "";
    const size = /^(?:var)?(?:char|binary)\((\d+)\)/i.exec(declared)?.[1];
    const long = /text|blob/i.test(declared) || Number(size ?? 0) > most;
    return `${ident(name)}${long ? `(${most})` : ""}`;
  });
  const names = plan.columns.map(({ name }) => ident(name)).join(", ");
  const make = (key: string) =>
    link.run(
      `CREATE TEMPORARY TABLE ${rows} (_magic_n BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY${key}) ENGINE = InnoDB AS SELECT ${names} FROM ${table} LIMIT 0`,
    );
  await make(`, KEY (${places.join(", ")})`).catch(() => make(""));
  await link.run(
    `CREATE TEMPORARY TABLE ${found} (n BIGINT UNSIGNED NOT NULL PRIMARY KEY, times BIGINT NOT NULL) ENGINE = InnoDB`,
  );
  return { rows, found };
}

/** Upserts the rows. The table is read twice for all of them. */
export async function upsertStaged(
  target: InsertTarget,
  stage: Stage,
  given: readonly Row[],
  givenPlace: (at: number) => number,
): Promise<WriteResult & { bytes: number }> {
  const { link, table, plan } = target;
  const keyed = keyedRows(given, plan, givenPlace);
  const last = lastOfEach(keyed.rows, plan);
  for (const name of [stage.found, stage.rows]) await link.run(`DELETE FROM ${name}`);
  const staged = await insertRows(
    { ...target, table: stage.rows, upsert: null },
    last.map((at) => keyed.rows[at] as Row),
    (at) => keyed.place(last[at] as number),
  );
  // Our own tables' names mean nothing to anybody.
  const named = staged.rejects.map((one) => ({ ...one, reason: one.reason.replaceAll(stage.rows, table) }));
  const rejects: Reject[] = [...keyed.rejects, ...named];
  const both = `${table} t JOIN ${stage.rows} s ON ${sameKey(target)}`;
  await link.run(`INSERT INTO ${stage.found} SELECT s._magic_n, COUNT(*) FROM ${both} GROUP BY s._magic_n`);
  const numbers = (await link.rows(`SELECT _magic_n AS n FROM ${stage.rows} ORDER BY _magic_n`)).map((row) => row["n"]);
  // A refused statement names no row of the source's: halves are tried until it can only be one.
  const pending: [from: number, to: number][] = [[0, numbers.length - 1]];
  for (let range = pending.pop(); range; range = pending.pop()) {
    const [from, to] = range;
    if (from > to) continue;
    await link.run("SAVEPOINT magic_stage");
    try {
      await mergeStage(target, stage, both, `BETWEEN ${numbers[from]} AND ${numbers[to]}`);
    } catch (error) {
      if (!isRowError(error)) throw error;
      await link.run("ROLLBACK TO SAVEPOINT magic_stage");
      const middle = (from + to) >> 1;
      if (from < to) pending.push([middle + 1, to], [from, middle]);
      else {
        const [row] = await link.rows(
          `SELECT ${shownKey(plan)} AS k FROM ${stage.rows} WHERE _magic_n = ${numbers[from]}`,
        );
        const { column, reason } = placeIn(error.message);
        rejects.push({ key: row?.["k"] ?? "", column, reason });
      }
    }
  }
  return { written: given.length - rejects.length, rejects, bytes: staged.bytes };
}

async function mergeStage(target: InsertTarget, stage: Stage, both: string, range: string): Promise<void> {
  const { link, table, plan, marked } = target;
  const names = plan.columns.map(({ name }) => ident(name));
  const counts = `SELECT COUNT(*) AS n, SUM(times > 1) AS doubled FROM ${stage.found} WHERE n ${range}`;
  const [there] = await link.rows(counts);
  const doubled = Number(there?.["doubled"] ?? 0);
  if (doubled > 0)
    await link.run(
      `DELETE t FROM ${both} JOIN ${stage.found} f ON f.n = s._magic_n WHERE f.times > 1 AND s._magic_n ${range}`,
    );
  const sets = plan.columns
    .filter(({ name }) => !plan.primaryKey.includes(name))
    .map(({ name }) => `t.${ident(name)} = s.${ident(name)}`);
  if (marked) sets.push(`t.${ident(DELETED_AT)} = NULL`);
  if (Number(there?.["n"]) > doubled && sets.length > 0)
    await link.run(`UPDATE ${both} SET ${sets.join(", ")} WHERE s._magic_n ${range}`);
  await link.run(
    `INSERT INTO ${table} (${names.join(", ")}) SELECT ${names.map((name) => `s.${name}`).join(", ")} FROM ${stage.rows} s LEFT JOIN ${stage.found} f ON f.n = s._magic_n WHERE COALESCE(f.times, 2) > 1 AND s._magic_n ${range} ORDER BY s._magic_n`,
  );
}

// By the table's own comparison, which an index may serve, and by one to which "A" is not "a".
function sameKey({ link, plan }: InsertTarget): string {
  const key = plan.columns.filter(({ name }) => plan.primaryKey.includes(name));
  const exactly = (name: string) => `CONVERT(${name} USING utf8mb4) COLLATE ${link.keyCollation}`;
  return key
    .flatMap(({ name, type }) => {
      const [t, s] = [`t.${ident(name)}`, `s.${ident(name)}`];
      return [`${t} = ${s}`, ...(type.kind === "string" ? [`${exactly(t)} = ${exactly(s)}`] : [])];
    })
    .join(" AND ");
}
