// The matrix of modes and destinations under kill -9: after each kill the destination shows the rows of before or of after, never
// a mixture; and the run that ends by itself leaves exactly the source's rows.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mysqlMissing, startMysql, type TestMysql } from "#test/mysql.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { connect, specOf, sync } from "./harness.ts";
import { runAndKill, seeded } from "./kill.ts";

export interface Matrix {
  readonly destinations: readonly ("postgres" | "sqlite" | "csv" | "jsonl" | "parquet" | "mysql")[];
  readonly kills: number;
  readonly rows: number;
  readonly seed: number;
}

export function killMatrix({ destinations, kills, rows, seed }: Matrix): void {
  const wanted = destinations.filter((name) => name !== "mysql" || !mysqlMissing());
  describe.skipIf(postgresMissing())(`kill -9, ${kills} times each, seed ${seed}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "magic-kill-"));
    const random = seeded(seed);
    let server: TestPostgres;
    let mysql: TestMysql | undefined;
    let from: string;
    let source: Awaited<ReturnType<typeof connect>>;
    const places = new Map<string, string>();

    beforeAll(async () => {
      server = await startPostgres();
      from = await server.createDatabase();
      source = await connect(from);
      places.set("postgres", await server.createDatabase());
      if (wanted.includes("mysql")) {
        mysql = await startMysql();
        places.set("mysql", await mysql.createDatabase());
      }
    });
    afterAll(async () => {
      await source?.end();
      await server?.stop();
      await mysql?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    // What the destination holds, by way of PostgreSQL, so that every kind is compared alike.
    const contents = async (place: string, table: string) => {
      await source.query(`DROP TABLE IF EXISTS seen; CREATE TABLE seen (id bigint, v bigint, t text)`);
      const outcome = await sync(
        { from: place, object: table, to: from, table: "seen" },
        { columns: ["id", "v", "t"] },
      );
      if (outcome.error?.code === "object_not_found") return "absent";
      expect(outcome.error).toBeNull();
      return fingerprint("seen");
    };
    const fingerprint = async (table: string) => {
      const [row] = await source.query(
        `SELECT count(*) || ':' || coalesce(sum(hashtextextended(id || '/' || v || '/' || t, 0)::numeric), 0) AS f FROM ${table}`,
      );
      return row?.["f"] ?? "";
    };

    for (const destination of wanted)
      for (const mode of ["full_refresh", "incremental"] as const)
        test(`${mode} into ${destination}`, async () => {
          const table = `k_${destination}_${mode}`;
          const place = places.get(destination) ?? join(folder, `${table}.${destination}`);
          await source.query(
            `CREATE TABLE ${table} (id bigint PRIMARY KEY, v bigint, t text); INSERT INTO ${table} SELECT i, i, repeat('x', (i % 50)::int) FROM generate_series(1, ${rows}) i`,
          );
          const spec = specOf(
            { from, object: table, to: place, table },
            { mode, cursor_field: mode === "incremental" ? "v" : null, stall_timeout_s: 60 },
          );
          const started = performance.now();
          expect(await runAndKill(spec, null)).toMatchObject({ status: "completed" });
          const duration = performance.now() - started;
          let before = await fingerprint(table);
          let version = rows + 1;
          for (let kill = 0; kill < kills; kill++) {
            // Every run has something to do: updates everywhere, some new rows, and in a full refresh some gone.
            await source.query(`UPDATE ${table} SET v = ${version} + id, t = 'v${kill}' WHERE id % 7 = ${kill % 7}; INSERT INTO ${table} SELECT ${version} + i, ${version} + i, 'new' FROM generate_series(1, 100) i;
              ${mode === "full_refresh" ? `DELETE FROM ${table} WHERE id % 11 = ${kill % 11}` : ""}`);
            version += 10 * rows;
            const after = await fingerprint(table);
            const outcome = await runAndKill(spec, random() * duration);
            const now = await contents(place, table);
            expect([before, after]).toContain(now);
            if (outcome !== "killed") expect(now).toBe(after);
            if (now === after) before = after;
          }
          expect(await runAndKill(spec, null)).toMatchObject({ status: "completed" });
          expect(await contents(place, table)).toBe(await fingerprint(table));
          const left = readdirSync(folder).filter((name) => name.includes("partial"));
          expect(left).toEqual([]);
          if (destination !== "postgres") return;
          const target = await connect(place);
          expect(
            await target.query(
              "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE '\\_magic\\_s%' AND relname <> '_magic_state'",
            ),
          ).toEqual([]);
          await target.end();
        });
  });
}
