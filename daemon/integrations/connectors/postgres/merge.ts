// From the staging table into the destination's: upsert by key, duplicates, rows that have gone. All inside the run's transaction.
import { MagicError } from "#contract/errors.ts";
import { REJECTS_SHOWN, type Reject } from "#contract/sync.ts";
import { DELETED_AT, type WritePlan } from "../../engine/destination.ts";
import { DOUBLED } from "../../engine/keys.ts";
import { rejectsOf } from "../../engine/rejects.ts";
import type { Value } from "../../engine/types.ts";
import type { PostgresLink } from "./connect.ts";
import { isDataError, stillReferred } from "./errors.ts";
import { takeOutMiscomputed } from "./generated.ts";
import { canSift, sift } from "./sift.ts";
import { ident, identList } from "./sql.ts";
import { writeRows } from "./write-rows.ts";

export interface MergeTarget {
  readonly link: PostgresLink;
  /** Quoted. */
  readonly table: string;
  readonly plan: WritePlan;
  /** Columns that the table computes itself. */
  readonly generated: readonly string[];
  waiting(what: string): void;
}

/** Staged rows into the table: of one key the greatest cursor wins, then the later row. What the table's constraints refuse is rejected. */
export async function mergeStage(target: MergeTarget, stage: string): Promise<Reject[]> {
  const { link, table, plan } = target;
  const names = plan.columns.map(({ name }) => name);
  const key = plan.primaryKey;
  let rejects = [
    ...(await takeOutKeyless(link, stage, plan)),
    ...(await takeOutConfused(target, stage)),
    ...(await takeOutMiscomputed(target, stage)),
  ];
  await link.run(`ANALYZE ${stage}`);
  const newest =
    key.length > 0
      ? `SELECT DISTINCT ON (${identList(key)}) ${identList(names)} FROM ${stage} ORDER BY ${identList(key)}, ${await cursorFirst(link, stage, plan)}ctid DESC`
      : `SELECT ${identList(names)} FROM ${stage}`;
  const put = await putter(target);
  let refused: unknown;
  const attempt = async (work: () => Promise<unknown>) => {
    await link.run("SAVEPOINT magic_merge");
    try {
      await work();
      await link.run("RELEASE SAVEPOINT magic_merge");
      return true;
    } catch (error) {
      if (!isDataError(error)) throw error;
      refused ??= error;
      await link.run("ROLLBACK TO SAVEPOINT magic_merge; RELEASE SAVEPOINT magic_merge");
      return false;
    }
  };
  const merged =
    (await attempt(() => put(`(${newest})`))) ||
    // Rows that exchange the values of a unique column collide only one by one.
    ((await mayReplace(target)) &&
      (await attempt(async () => {
        await link.run(`DELETE FROM ${table} t USING ${stage} s WHERE ${sameKey(key, "t", "s")}`);
        await put(`(${newest})`);
      })));
  if (!merged && !canSift(refused, plan)) throw refused;
  if (!merged)
    rejects = [
      ...rejects,
      ...(await sift({ link, plan, rows: newest, put, updates: true, waiting: (what) => target.waiting(what) })),
    ];
  await link.run(`TRUNCATE ${stage}`);
  return rejects;
}

// A cursor that lies in a column of texts is compared as what its values are: 10 comes after 9, and 00:30+02:00 before 00:00Z.
async function cursorFirst(link: PostgresLink, table: string, plan: WritePlan): Promise<string> {
  const { cursorField, columns } = plan;
  if (plan.keyCertain || cursorField === null || columns.every(({ name }) => name !== cursorField)) return "";
  const cursor = ident(cursorField);
  const [found] = await link.rows<{ number: string | null; time: string | null }>(
    `SELECT bool_and(v ~ '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?$')::text AS number, bool_and(v ~ '^[0-9]{4,}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$')::text AS time
       FROM (SELECT ${cursor}::text AS v FROM ${table} WHERE pg_typeof(${cursor}) IN ('text', 'varchar', 'bpchar')) t`,
  );
  const type = found?.number === "true" ? "numeric" : found?.time === "true" ? "timestamptz" : null;
  if (type === null) return `${cursor} DESC NULLS LAST, `;
  const typed = `${cursor}::${type} DESC NULLS LAST, ${cursor} DESC, `;
  await link.run("SAVEPOINT magic_cursor");
  try {
    await link.run(`SELECT max(${cursor}::${type}) FROM ${table}; RELEASE SAVEPOINT magic_cursor`);
    return typed;
  } catch (error) {
    // The 31st of February.
    if (!/^22/.test((error as { code?: string }).code ?? "")) throw error;
    await link.run("ROLLBACK TO SAVEPOINT magic_cursor; RELEASE SAVEPOINT magic_cursor");
    return `${cursor} DESC NULLS LAST, `;
  }
}

const sameKey = (key: readonly string[], a: string, b: string) =>
  key.map((name) => `${a}.${ident(name)} = ${b}.${ident(name)}`).join(" AND ");

/** A function that upserts the rows of a FROM item (inserts them where there is no key). */
export async function putter({ link, table, plan, generated }: MergeTarget): Promise<(from: string) => Promise<void>> {
  const key = plan.primaryKey;
  const marks = plan.kind === "replace" && plan.deletes === "soft" ? [DELETED_AT] : [];
  const names = [...plan.columns.map(({ name }) => name).filter((name) => !generated.includes(name)), ...marks];
  const values = names.filter((name) => !key.includes(name));
  const nulls = await leftNull(link, table, plan);
  // Whatever this run does about deletions: a record that is there has not gone.
  if (marks.length === 0 && (plan.deletes === "soft" || (await hasMark(link, table)))) nulls.push(DELETED_AT);
  const sets = (row: string) =>
    [
      ...values.map((name) => `${ident(name)} = ${row}.${ident(name)}`),
      ...nulls.map((name) => `${ident(name)} = NULL`),
    ].join(", ");
  const insert = (from: string) =>
    `INSERT INTO ${table} (${identList(names)}) OVERRIDING SYSTEM VALUE SELECT ${identList(names)} FROM ${from} s`;
  // What would else be checked by the commit, where nobody could tell the row.
  const checked = () => link.run("SET CONSTRAINTS ALL IMMEDIATE");
  if (key.length === 0)
    return async (from) => {
      await link.run(insert(from));
      await checked();
    };
  const { there, barred } = await uniqueIndexes(link, table, key);
  if (there && !barred) {
    const set = sets("EXCLUDED");
    const conflict = set === "" ? "DO NOTHING" : `DO UPDATE SET ${set}`;
    return async (from) => {
      await link.run(`${insert(from)} ON CONFLICT (${identList(key)}) ${conflict}`);
      await checked();
    };
  }
  const same = sameKey(key, "t", "s");
  // A full refresh has taken the rows out that it brings.
  if (plan.kind === "replace" || !(await canUpdate(link, table, values)))
    return async (from) => {
      await link.run(`DELETE FROM ${table} t USING ${from} s WHERE ${same}`);
      await link.run(insert(from));
      await checked();
    };
  const set = sets("s");
  return async (from) => {
    // Several rows of one key become one; by their places, which a nested loop finds too, however few the planner expects.
    const places = `SELECT t.tableoid AS part, t.ctid AS place, count(*) OVER (PARTITION BY ${identList(key, "s.")}) AS n FROM ${table} t JOIN ${from} s ON ${same}`;
    await link.run(
      `DELETE FROM ${table} t USING (${places}) d WHERE d.n > 1 AND t.ctid = d.place AND t.tableoid = d.part`,
    );
    if (set !== "") await link.run(`UPDATE ${table} t SET ${set} FROM ${from} s WHERE ${same}`);
    await link.run(`${insert(from)} WHERE NOT EXISTS (SELECT FROM ${table} t WHERE ${same})`);
    await checked();
  };
}

// GENERATED ALWAYS AS IDENTITY takes a value of ours by an INSERT only.
async function canUpdate(link: PostgresLink, table: string, columns: readonly string[]): Promise<boolean> {
  const found = await link.rows(
    "SELECT FROM pg_attribute WHERE attrelid = $1::regclass AND attname::text = ANY ($2::text[]) AND attidentity = 'a'",
    [table, [...columns]],
  );
  return found.length === 0;
}

// Of rows that a full refresh updates in place.
async function leftNull(link: PostgresLink, table: string, { kind, left }: WritePlan): Promise<string[]> {
  if (kind !== "replace" || left.length === 0) return [];
  const found = await link.rows<{ name: string }>(
    "SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attname::text = ANY ($2::text[]) AND NOT (attisdropped OR attnotnull) AND attgenerated = ''",
    [table, [...left]],
  );
  return found.map(({ name }) => name);
}

async function hasMark(link: PostgresLink, table: string): Promise<boolean> {
  const found = await link.rows(
    "SELECT FROM pg_attribute WHERE attrelid = $1::regclass AND attname = $2 AND NOT attisdropped",
    [table, DELETED_AT],
  );
  return found.length > 0;
}

// Deleting a row and inserting it anew is the same as updating it only where nothing else hangs on it and no column is left out.
async function mayReplace({ link, table, plan, generated }: MergeTarget): Promise<boolean> {
  if (plan.primaryKey.length === 0) return false;
  const names = [...plan.columns.map(({ name }) => name), ...generated, DELETED_AT];
  const [row] = await link.rows<{ may: string }>(
    `SELECT (NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::regclass AND NOT tgisinternal)
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE confrelid = $1::regclass)
        AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ALL ($2::text[])))::text AS may`,
    [table, names],
  );
  return row?.may === "true";
}

export async function hasUniqueIndex(link: PostgresLink, table: string, key: readonly string[]): Promise<boolean> {
  return (await uniqueIndexes(link, table, key)).there;
}

// `barred`: ON CONFLICT, which takes a deferrable index beside another one for its own, and neither a key WITHOUT OVERLAPS nor a table with
// rules for what it may do.
async function uniqueIndexes(
  link: PostgresLink,
  table: string,
  key: readonly string[],
): Promise<{ there: boolean; barred: boolean }> {
  const [row] = await link.rows<{ there: string | null; barred: string | null }>(
    `SELECT bool_or(i.indimmediate)::text AS there,
            (bool_or(NOT i.indimmediate OR i.indisexclusion) OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = $1::regclass AND ev_type IN ('2', '3')))::text AS barred
       FROM pg_index i WHERE i.indrelid = $1::regclass AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
        AND (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM unnest(i.indkey::int[]) WITH ORDINALITY k(n, at) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n WHERE k.at <= i.indnkeyatts)
          = (SELECT array_agg(x ORDER BY x COLLATE "C") FROM unnest($2::text[]) x)`,
    [table, [...key]],
  );
  return { there: row?.there === "true", barred: row?.barred === "true" };
}

// Rows without the key that was asked for: they could not be told from others, and would come again at every run.
async function takeOutKeyless(link: PostgresLink, table: string, plan: WritePlan): Promise<readonly Reject[]> {
  if (plan.keyCertain || plan.primaryKey.length === 0) return [];
  const missing = plan.primaryKey.map((name) => `${ident(name)} IS NULL`).join(" OR ");
  const gone = await link.run(`DELETE FROM ${table} WHERE ${missing}`);
  const reject = { key: "null", column: plan.primaryKey[0] ?? null, reason: "the primary key is null" };
  return gone > 0 ? rejectsOf([reject], gone) : [];
}

/**
 * Takes out rows whose key the table's comparison (citext, a collation that ignores case) takes for that of another record: of two such
 * records one would get the other's values. The row that is there stays, else the first.
 */
async function takeOutConfused({ link, table, plan }: MergeTarget, stage: string): Promise<Reject[]> {
  const key = plan.primaryKey;
  if (key.length === 0) return [];
  const loose = await link.rows<{ name: string }>(
    `SELECT a.attname AS name FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype LEFT JOIN pg_collation c ON c.oid = a.attcollation
      WHERE a.attrelid = $1::regclass AND a.attname = ANY ($2::text[]) AND ('citext' IN (t.typname, b.typname) OR to_jsonb(c) ->> 'collisdeterministic' = 'false')`,
    [table, [...key]],
  );
  if (loose.length === 0) return [];
  const exactly = (prefix: string) =>
    `(${loose.map(({ name }) => `${prefix}${ident(name)}::text COLLATE "C"`).join(", ")})`;
  const shown = `concat_ws(',', ${key.map((name) => `s.${ident(name)}::text`).join(", ")}) AS key`;
  const gone = [
    ...(await link.rows<{ key: string }>(
      `DELETE FROM ${stage} s USING ${table} t WHERE ${sameKey(key, "s", "t")} AND ${exactly("s.")} <> ${exactly("t.")} RETURNING ${shown}`,
    )),
    ...(await link.rows<{ key: string }>(
      `DELETE FROM ${stage} s USING (SELECT DISTINCT ON (${identList(key)}) * FROM ${stage} ORDER BY ${identList(key)}, ctid) t WHERE ${sameKey(key, "s", "t")} AND ${exactly("s.")} <> ${exactly("t.")} RETURNING ${shown}`,
    )),
  ];
  const reason = "another row has this key by the table's comparison";
  return gone.map((row) => ({ key: row.key, column: key[0] ?? null, reason }));
}

/**
 * Takes out all but one row of each key, and rows without one. In a full refresh the last row stays and the others are rejects; else the
 * one with the greatest cursor, whose older versions the others are.
 */
export async function takeOutDuplicates(
  link: PostgresLink,
  table: string,
  plan: WritePlan,
): Promise<readonly Reject[]> {
  const key = plan.primaryKey;
  const rejects = await takeOutKeyless(link, table, { ...plan, keyCertain: false });
  const [first] = await link.rows<{ there: string }>(
    `SELECT EXISTS (SELECT FROM ${table} GROUP BY ${identList(key)} HAVING count(*) > 1)::text AS there`,
  );
  if (first?.there !== "true") return rejects;
  const doubled = await link.rows<{ key: string | null; n: string }>(
    `WITH ranked AS (SELECT ctid AS place, row_number() OVER (PARTITION BY ${identList(key)} ORDER BY ${plan.kind === "upsert" ? await cursorFirst(link, table, plan) : ""}ctid DESC) AS n FROM ${table}),
          gone AS (DELETE FROM ${table} t USING ranked r WHERE t.ctid = r.place AND r.n > 1 RETURNING concat_ws(',', ${identList(key, "t.")}) AS key)
     SELECT key, (SELECT count(*) FROM gone)::text AS n FROM gone LIMIT ${REJECTS_SHOWN}`,
  );
  if (plan.kind === "upsert") return rejects;
  const shown = doubled.map((row) => ({ key: row.key ?? "", column: key[0] ?? null, reason: DOUBLED }));
  return rejects.concat(rejectsOf(shown, Number(doubled[0]?.n ?? 0)));
}

/** A full refresh with soft deletes: rows of the old table that the new one lacks stay, marked. `keyed`: the plan's key is the old table's own. */
export async function keepDeleted(
  link: PostgresLink,
  old: string,
  shadow: string,
  plan: WritePlan,
  keyed: boolean,
): Promise<void> {
  // The rows that came have been numbered anew.
  const there = await link.rows<{ name: string }>(
    "SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND (attidentity = '' OR attname::text = ANY ($2::text[]))",
    [old, plan.columns.map(({ name }) => name)],
  );
  const names = there.map(({ name }) => name).filter((name) => name !== DELETED_AT);
  const marked = names.length < there.length ? `coalesce(o.${ident(DELETED_AT)}, now())` : "now()";
  const key = plan.primaryKey;
  const gone = `FROM ${old} o WHERE NOT EXISTS (SELECT FROM ${shadow} n WHERE ${sameKey(key, "n", "o")})`;
  if (!keyed) {
    const lacks = key.some((name) => !names.includes(name));
    const one = identList(key, "o.");
    const [unkeyed] = await link.rows<{ there: string }>(
      `SELECT EXISTS (SELECT ${lacks ? `FROM ${old}` : `${gone} GROUP BY ${one} HAVING count(*) > 1 OR num_nulls(${one}) > 0`})::text AS there`,
    );
    if (unkeyed?.there === "true")
      throw new MagicError(
        "schema_drift",
        `Rows of ${old} that have gone would stay, marked, and ${key.join(", ")} does not tell them apart, as it does the records now: bring the column in line there, or leave none of them (--deletes hard). Nothing was changed.`,
      );
    if (lacks) return;
  }
  await link.run(
    `INSERT INTO ${shadow} (${identList(names)}, ${ident(DELETED_AT)}) OVERRIDING SYSTEM VALUE SELECT ${identList(names, "o.")}, ${marked} ${gone}`,
  );
}

/** Marks or removes rows whose key the source no longer has; returns how many. */
export async function deleteMissing(
  link: PostgresLink,
  table: string,
  plan: WritePlan,
  keys: AsyncIterable<readonly Value[][]>,
): Promise<number> {
  const key = plan.primaryKey;
  await link.run(`CREATE TEMP TABLE _magic_keys ON COMMIT DROP AS SELECT ${identList(key)} FROM ${table} WITH NO DATA`);
  // A key that its column cannot hold is in no row here.
  const columns = key.flatMap((name) => plan.columns.find((column) => column.name === name) ?? []);
  const target = { link, table: "pg_temp._magic_keys", columns, jsonb: [], keyOf: () => "" };
  for await (const rows of keys) await writeRows(target, rows, (at) => at);
  await link.run("ANALYZE pg_temp._magic_keys");
  const gone = `NOT EXISTS (SELECT FROM pg_temp._magic_keys k WHERE ${key.map((name) => `k.${ident(name)} = t.${ident(name)}`).join(" AND ")})`;
  const removal =
    plan.deletes === "soft"
      ? `UPDATE ${table} t SET ${ident(DELETED_AT)} = now() WHERE ${ident(DELETED_AT)} IS NULL AND ${gone}`
      : `DELETE FROM ${table} t WHERE ${gone}`;
  const count = await link.run(removal).catch((error: unknown) => {
    throw stillReferred(error);
  });
  await link.run("DROP TABLE pg_temp._magic_keys");
  return count;
}
