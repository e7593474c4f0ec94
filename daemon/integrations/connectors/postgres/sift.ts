// Rows that a constraint of the whole table refuses (a second unique column, a foreign key, a missing partition): the statement that
// fails names none of them, so halves are tried, each under a savepoint, until what fails is one row. The others go in.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "../../engine/destination.ts";
import type { PostgresLink } from "./connect.ts";
import { isDataError } from "./errors.ts";
import { ident, identList } from "./sql.ts";
import { reasonOf } from "./write-rows.ts";

export interface Sieve {
  readonly link: PostgresLink;
  readonly plan: Pick<WritePlan, "primaryKey" | "onBadRecord">;
  /** A query that gives the rows, in an order that is the same until `begin` has been called. */
  readonly rows: string;
  /** Called when the rows are kept aside. */
  begin?(): Promise<void>;
  /** Writes the rows of a FROM item, by the columns' names; fails as a whole. */
  put(from: string): Promise<void>;
  waiting(what: string): void;
}

const SIFT = "pg_temp._magic_sift";

/** True for an error that sifting can help with. */
export function canSift(error: unknown, plan: Pick<WritePlan, "onBadRecord">): boolean {
  return isDataError(error) && plan.onBadRecord === "quarantine";
}

/** Writes all rows that can be; the others are the rejects. */
export async function sift(sieve: Sieve): Promise<Reject[]> {
  const { link, plan, put } = sieve;
  await link.run(
    `CREATE TEMP TABLE _magic_sift ON COMMIT DROP AS SELECT row_number() OVER () AS _magic_n, r.* FROM (${sieve.rows}) r`,
  );
  await link.run(`CREATE UNIQUE INDEX ON ${SIFT} (_magic_n); ANALYZE ${SIFT}`);
  await sieve.begin?.();
  const [size] = await link.rows<{ n: string }>(`SELECT count(*)::text AS n FROM ${SIFT}`);
  const rejects: Reject[] = [];
  const pending: [from: number, to: number][] = [[1, Number(size?.n ?? 0)]];
  for (let range = pending.pop(); range; range = pending.pop()) {
    const [from, to] = range;
    if (from > to) continue;
    sieve.waiting(`the rows from ${from} to ${to}, to find those that the table refuses (${rejects.length} so far)`);
    await link.run("SAVEPOINT magic_sift");
    try {
      await put(`(SELECT * FROM ${SIFT} WHERE _magic_n BETWEEN ${from} AND ${to})`);
      await link.run("RELEASE SAVEPOINT magic_sift");
    } catch (error) {
      if (!isDataError(error)) throw error;
      await link.run("ROLLBACK TO SAVEPOINT magic_sift; RELEASE SAVEPOINT magic_sift");
      const middle = (from + to) >> 1;
      // The first half is on top: rows go in in their order.
      if (from < to) pending.push([middle + 1, to], [from, middle]);
      else rejects.push({ key: await keyAt(link, plan.primaryKey, from), column: null, reason: reasonOf(error) });
    }
  }
  await link.run(`DROP TABLE ${SIFT}`);
  return rejects;
}

async function keyAt(link: PostgresLink, key: readonly string[], at: number): Promise<string> {
  if (key.length === 0) return `row ${at}`;
  const [row] = await link.rows<{ key: string }>(
    `SELECT concat_ws(',', ${key.map((name) => `${ident(name)}::text`).join(", ")}) AS key FROM ${SIFT} WHERE _magic_n = ${at}`,
  );
  return (row?.key ?? identList(key)).slice(0, 200);
}
