// Every PostgreSQL type at its extremes on every path: PostgreSQL's own, and through each kind of file and MySQL and back.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mysqlMissing, startMysql, type TestMysql } from "#test/mysql.ts";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { fidelitySetup, fidelityTypes } from "./fidelity.ts";
import { openPair, type Pair, sync } from "./harness.ts";

/** `typed`: the table at the end is there, with the source's type; else the path must make it. */
const paths = [
  "pg",
  "pg typed",
  "sqlite",
  "sqlite typed",
  "parquet",
  "parquet typed",
  "csv typed",
  "jsonl typed",
  "mysql typed",
] as const;

describe.skipIf(postgresMissing())("fidelity", () => {
  const folder = folderOfFile();
  let pair: Pair;
  let mysql: TestMysql | undefined;
  let my: string;
  let { from, to, source, target } = {} as Pair;
  const tables: { table: string; type: string; rows: number }[] = [];

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
    if (!mysqlMissing()) {
      mysql = await startMysql();
      my = await mysql.createDatabase();
    }
    await source.query(fidelitySetup);
    await target.query(fidelitySetup);
    for (const [at, [type, values]] of fidelityTypes.entries()) {
      const table = `f${at}`;
      try {
        await source.query(
          `CREATE TABLE ${table} (id int PRIMARY KEY, v ${type}); INSERT INTO ${table} VALUES (0, NULL), ${values.map((value, n) => `(${n + 1}, ${value})`).join(", ")}`,
        );
        tables.push({ table, type, rows: values.length + 1 });
      } catch (error) {
        if (!/does not exist/.test((error as Error).message)) throw new Error(`${type}: ${(error as Error).message}`);
      }
    }
  });
  afterAll(async () => {
    await pair?.close();
    await mysql?.stop();
  });

  for (const path of paths)
    test(`${path}: equal, or quarantined and counted, also the second time`, async () => {
      if (path.startsWith("mysql") && !mysql) return;
      const [kind = "", typed] = path.split(" ");
      const problems: string[] = [];
      const quarantined: string[] = [];
      for (const { table, type, rows } of tables) {
        const end = `t_${kind}_${typed ?? "free"}_${table}`;
        if (typed) await target.query(`CREATE TABLE ${end} (id int PRIMARY KEY, v ${type})`);
        const middle =
          kind === "pg" ? null : kind === "mysql" ? my : join(folder, `${table}_${typed ?? "free"}.${kind}`);
        const once = async () =>
          middle
            ? [
                await sync({ from, object: table, to: middle, table }),
                await sync({ from: middle, object: table, to, table: end }),
              ]
            : [await sync({ from, object: table, to, table: end })];
        const first = await once();
        // Again, over the tables and files that the first run has made.
        const legs = first.some(({ error }) => error !== null) ? first : await once();
        const failed = legs.find(({ error }) => error !== null);
        // What MySQL keeps as text goes into no column of another type without a person's word.
        if (kind === "mysql" && failed?.error?.code === "schema_drift") continue;
        if (failed) {
          problems.push(`${type}: ${failed.error?.message}`);
          continue;
        }
        const rejected = legs.reduce((sum, { records_rejected }) => sum + records_rejected, 0);
        for (const { rejects } of legs)
          for (const { key, reason } of rejects) quarantined.push(`${type} #${key}: ${reason.slice(0, 100)}`);
        // json has no equality but its text; what JSON Lines may change of it is the space between its parts. A wider column is read as the type.
        const shown =
          type === "json" && kind === "jsonl" ? "id, regexp_replace(v::text, '\\s', '', 'g')" : `id, v::${type}::text`;
        const wanted = new Set(await source.lines(table, shown));
        const got = await target.lines(end, typed ? shown : shown.replace(`v::${type}`, "v"));
        for (const line of got) if (!wanted.has(line)) problems.push(`${type}: changed into ${line.slice(0, 200)}`);
        const before = first.reduce((sum, { records_rejected }) => sum + records_rejected, 0);
        if (before !== rejected) problems.push(`${type}: ${before} were rejected first, then ${rejected}`);
        if (got.length + rejected !== rows)
          problems.push(`${type}: ${got.length} arrived and ${rejected} were rejected of ${rows}`);
      }
      if (process.env["MAGIC_DEBUG"]) process.stderr.write(`${path}\n  ${quarantined.join("\n  ")}\n`);
      expect(problems).toEqual([]);
    });
});
