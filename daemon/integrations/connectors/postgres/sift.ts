// Rows that a constraint of the whole table refuses (a second unique column, a foreign key, a missing partition): the statement that
// fails names none of them, so halves are tried, each under a savepoint, until what fails is one row. The others go in.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "../../engine/destination.ts";
import { triedBackwards } from "../../engine/taken.ts";
import type { PostgresLink } from "./connect.ts";
import { isDataError, type ServerError } from "./errors.ts";
import { ident, identList } from "./sql.ts";
import { columnOf, reasonOf } from "./write-rows.ts";

export interface Sieve {
  readonly link: PostgresLink;
  readonly plan: Pick<WritePlan, "primaryKey" | "onBadRecord">;
  /** A query that gives the rows, in an order that is the same until `begin` has been called. */
  readonly rows: string;
  /** Called when the rows are kept aside. */
  begin?(): Promise<void>;
  /** Writes the rows of a FROM item, by the columns' names; fails as a whole. */
  put(from: string): Promise<void>;
  /** True where it changes rows that are there: what one row is refused for, another one may give up. */
  readonly updates?: boolean;
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
  const rows = Number(size?.n ?? 0);
  const refused: Refused[] = [];
  const refusal = async (from: number, to: number): Promise<ServerError | null> => {
    sieve.waiting(`the rows from ${from} to ${to}, to find those that the table refuses (${refused.length} so far)`);
    await link.run("SAVEPOINT magic_sift");
    try {
      await put(`(SELECT * FROM ${SIFT} WHERE _magic_n BETWEEN ${from} AND ${to})`);
      await link.run("RELEASE SAVEPOINT magic_sift");
      return null;
    } catch (error) {
      if (!isDataError(error)) throw error;
      await link.run("ROLLBACK TO SAVEPOINT magic_sift; RELEASE SAVEPOINT magic_sift");
      return error;
    }
  };
  const pending: [from: number, to: number][] = [[1, rows]];
  for (let range = pending.pop(); range; range = pending.pop()) {
    const [from, to] = range;
    if (from > to) continue;
    const error = await refusal(from, to);
    const middle = (from + to) >> 1;
    // The first half is on top: rows go in in their order.
    if (error && from < to) pending.push([middle + 1, to], [from, middle]);
    else if (error) refused.push({ at: from, error });
  }
  // Values that move on from row to row are free from the last one on. Where no row went in, none has become free.
  const left =
    sieve.updates && refused.length < rows
      ? await triedBackwards(refused, async (one) => {
          const error = isTaken(one) ? await refusal(one.at, one.at) : one.error;
          return error && { at: one.at, error };
        })
      : refused;
  const rejects: Reject[] = [];
  for (const { at, error } of left.sort((a, b) => a.at - b.at))
    rejects.push({ key: await keyAt(link, plan.primaryKey, at), column: columnOf(error), reason: reasonOf(error) });
  await link.run(`DROP TABLE ${SIFT}`);
  return rejects;
}

interface Refused {
  readonly at: number;
  readonly error: ServerError;
}

// By another row's value: 23505 of a unique column, 23P01 of a constraint that excludes.
const isTaken = ({ error }: Refused) => error.code === "23505" || error.code === "23P01";

async function keyAt(link: PostgresLink, key: readonly string[], at: number): Promise<string> {
  if (key.length === 0) return `row ${at}`;
  const [row] = await link.rows<{ key: string }>(
    `SELECT concat_ws(',', ${key.map((name) => `${ident(name)}::text`).join(", ")}) AS key FROM ${SIFT} WHERE _magic_n = ${at}`,
  );
  return (row?.key ?? identList(key)).slice(0, 200);
}
