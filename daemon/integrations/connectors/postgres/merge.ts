// From the staging table into the destination's: upsert by key, duplicates, rows that have gone. All inside the run's transaction.
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "../../engine/destination.ts";
import type { Value } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { lineOf } from "./copy-text.ts";
import { ident, identList } from "./sql.ts";

const DELETED_AT = "_magic_deleted_at";

/** Staged rows into the table: of one key the greatest cursor wins, then the later row. */
export async function applyMerge(link: PostgresLink, stage: string, table: string, plan: WritePlan): Promise<void> {
  const names = plan.columns.map(({ name }) => name);
  const key = plan.primaryKey;
  const cursor =
    plan.cursorField && names.includes(plan.cursorField) ? `${ident(plan.cursorField)} DESC NULLS LAST, ` : "";
  const newest = `SELECT DISTINCT ON (${identList(key)}) ${identList(names)} FROM ${stage} ORDER BY ${identList(key)}, ${cursor}ctid DESC`;
  const rest = names.filter((name) => !key.includes(name));
  const sets = rest.map((name) => `${ident(name)} = EXCLUDED.${ident(name)}`);
  if (plan.deletes === "soft") sets.push(`${ident(DELETED_AT)} = NULL`);
  await link.run(`ANALYZE ${stage}`);
  if (await hasUniqueIndex(link, table, key)) {
    const conflict = sets.length > 0 ? `DO UPDATE SET ${sets.join(", ")}` : "DO NOTHING";
    await link.run(`INSERT INTO ${table} (${identList(names)}) ${newest} ON CONFLICT (${identList(key)}) ${conflict}`);
  } else {
    const same = key.map((name) => `t.${ident(name)} = s.${ident(name)}`).join(" AND ");
    await link.run(`DELETE FROM ${table} t USING ${stage} s WHERE ${same}`);
    await link.run(`INSERT INTO ${table} (${identList(names)}) ${newest}`);
  }
  await link.run(`TRUNCATE ${stage}`);
}

async function hasUniqueIndex(link: PostgresLink, table: string, key: readonly string[]): Promise<boolean> {
  const [row] = await link.rows<{ there: string }>(
    `SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = $1::regclass AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
        AND (SELECT array_agg(a.attname::text ORDER BY 1) FROM unnest(i.indkey::int[]) WITH ORDINALITY k(n, at) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n WHERE k.at <= i.indnkeyatts)
          = (SELECT array_agg(x ORDER BY 1) FROM unnest($2::text[]) x))::text AS there`,
    [table, [...key]],
  );
  return row?.there === "true";
}

/** Takes out all but the last row of each key, and rows without one; they are rejects. */
export async function takeOutDuplicates(link: PostgresLink, table: string, plan: WritePlan): Promise<Reject[]> {
  const key = plan.primaryKey;
  const missing = await link.rows<{ n: string }>(
    `WITH gone AS (DELETE FROM ${table} WHERE ${key.map((name) => `${ident(name)} IS NULL`).join(" OR ")} RETURNING 1) SELECT count(*)::text AS n FROM gone`,
  );
  const rejects: Reject[] = [];
  for (let n = Number(missing[0]?.n ?? 0); n > 0; n--)
    rejects.push({ key: "null", column: key[0] ?? null, reason: "the primary key is null" });
  const [first] = await link.rows<{ there: string }>(
    `SELECT EXISTS (SELECT FROM ${table} GROUP BY ${identList(key)} HAVING count(*) > 1)::text AS there`,
  );
  if (first?.there !== "true") return rejects;
  const doubled = await link.rows<{ key: string | null }>(
    `WITH ranked AS (SELECT ctid AS place, row_number() OVER (PARTITION BY ${identList(key)} ORDER BY ctid DESC) AS n FROM ${table}),
          gone AS (DELETE FROM ${table} t USING ranked r WHERE t.ctid = r.place AND r.n > 1 RETURNING concat_ws(',', ${identList(key, "t.")}) AS key)
     SELECT key FROM gone`,
  );
  for (const row of doubled)
    rejects.push({
      key: row.key ?? "",
      column: key[0] ?? null,
      reason: "another row has the same primary key; the last one was kept",
    });
  return rejects;
}

/** A full refresh with soft deletes: rows of the old table that the new one lacks stay, marked. */
export async function keepDeleted(link: PostgresLink, old: string, shadow: string, plan: WritePlan): Promise<void> {
  const there = await link.rows<{ name: string }>(
    "SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
    [old],
  );
  const names = plan.columns.map(({ name }) => name).filter((name) => there.some((one) => one.name === name));
  const marked = there.some(({ name }) => name === DELETED_AT) ? `coalesce(o.${ident(DELETED_AT)}, now())` : "now()";
  const same = plan.primaryKey.map((name) => `n.${ident(name)} = o.${ident(name)}`).join(" AND ");
  await link.run(
    `INSERT INTO ${shadow} (${identList(names)}, ${ident(DELETED_AT)}) SELECT ${identList(names, "o.")}, ${marked} FROM ${old} o WHERE NOT EXISTS (SELECT FROM ${shadow} n WHERE ${same})`,
  );
}

/** Marks or removes rows whose key the source no longer has; returns how many. */
export async function deleteMissing(
  link: PostgresLink,
  table: string,
  plan: WritePlan,
  keys: AsyncIterable<readonly Value[][]>,
): Promise<number> {
  const { from } = (await import("pg-copy-streams")).default;
  const key = plan.primaryKey;
  await link.run(`CREATE TEMP TABLE _magic_keys ON COMMIT DROP AS SELECT ${identList(key)} FROM ${table} WITH NO DATA`);
  const stream = link.client.query(from("COPY pg_temp._magic_keys FROM STDIN"));
  const { pipeline } = await import("node:stream/promises");
  await pipeline(async function* () {
    for await (const rows of keys) yield Buffer.from(rows.map(lineOf).join(""), "utf8");
  }, stream);
  await link.run("ANALYZE pg_temp._magic_keys");
  const gone = `NOT EXISTS (SELECT FROM pg_temp._magic_keys k WHERE ${key.map((name) => `k.${ident(name)} = t.${ident(name)}`).join(" AND ")})`;
  const count =
    plan.deletes === "soft"
      ? await link.run(
          `UPDATE ${table} t SET ${ident(DELETED_AT)} = now() WHERE ${ident(DELETED_AT)} IS NULL AND ${gone}`,
        )
      : await link.run(`DELETE FROM ${table} t WHERE ${gone}`);
  await link.run("DROP TABLE pg_temp._magic_keys");
  return count;
}
