// A database server that is restarted while a run reads from it or writes into it: the run fails at once and says so, what was there
// stays, nothing of ours is left, and the next run ends in the source's rows.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SyncOutcome, SyncSpec } from "#contract/sync.ts";
import { openDestination, openSource } from "#daemon/integrations/connectors/open.ts";
import { runSync } from "#daemon/integrations/engine/run.ts";
import { mysqlMissing, startMysql, type TestMysql } from "#test/mysql.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { connect, specOf, sync } from "./harness.ts";

type Kind = "postgres" | "mysql" | "sqlite" | "parquet";
export type Case = readonly [source: Kind, destination: Kind, restarted: "source" | "destination"];

export function restarts(cases: readonly Case[], rows: number): void {
  const wanted = cases.filter((one) => !one.includes("mysql") || !mysqlMissing());
  describe.skipIf(postgresMissing())("a server that is restarted", () => {
    const folder = mkdtempSync(join(tmpdir(), "magic-restart-"));
    // One server an end, so that one goes on.
    const servers = new Map<string, TestPostgres | TestMysql>();
    const home = { source: "src", destination: "dst" };
    const place = new Map<string, string>();
    let keeper: TestPostgres;
    let kept: string;

    beforeAll(async () => {
      keeper = await startPostgres();
      kept = await keeper.createDatabase();
      for (const [source, destination] of wanted)
        for (const [side, kind] of Object.entries({ source, destination }) as ["source" | "destination", Kind][]) {
          const name = `${side} ${kind}`;
          if (place.has(name) || kind === "sqlite" || kind === "parquet") continue;
          const server = kind === "mysql" ? await startMysql() : await startPostgres();
          servers.set(name, server);
          place.set(name, await server.createDatabase(home[side]));
        }
    });
    afterAll(async () => {
      for (const server of [...servers.values(), keeper]) await server?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    for (const [source, destination, restarted] of wanted)
      for (const mode of ["full_refresh", "incremental"] as const)
        for (const hard of [false, true])
          test(`${source} to ${destination}, ${mode}: the ${restarted} ${hard ? "crashes" : "is restarted"}`, async () => {
            const table = `r_${source}_${destination}_${mode}_${restarted}_${hard}`;
            const from = place.get(`source ${source}`) ?? "";
            const to = place.get(`destination ${destination}`) ?? join(folder, `${table}.${destination}`);
            await fill(kept, table, rows, 1);
            const copied = () => sync({ from: kept, object: table, to: from, table });
            expect((await copied()).error).toBeNull();
            const spec = specOf(
              { from, object: table, to, table },
              { mode, cursor_field: mode === "incremental" ? "v" : null },
            );
            expect((await run(spec)).error).toBeNull();
            await fill(kept, table, rows, 2);
            expect((await copied()).error).toBeNull();
            const server = servers.get(`${restarted} ${restarted === "source" ? source : destination}`);
            let again: Promise<void> | undefined;
            const outcome = await run(spec, () => {
              again ??= hard
                ? (server as TestPostgres).restart(("socketFolder" in (server ?? {}) ? "SIGQUIT" : "SIGKILL") as never)
                : server?.restart();
            });
            // On a machine in a hurry the run may have been through before anybody looked.
            await again;
            if (!again) expect(outcome.status).toBe("completed");
            // What was committed before the restart is a run that ended well.
            if (outcome.status !== "completed")
              expect(outcome.error?.code).toMatch(/^(connection_lost|unreachable|destination_refused)$/);
            const seen = await contents(to, table);
            expect(seen).toBe(outcome.status === "completed" ? "2" : "1");
            expect((await run(spec)).error).toBeNull();
            expect(await contents(to, table)).toBe("2");
            expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
          });

    // The version of the rows that a place shows; a mixture is told.
    async function contents(at: string, table: string): Promise<string> {
      const client = await connect(kept);
      await client.query("DROP TABLE IF EXISTS seen; CREATE TABLE seen (id int, v bigint, t text, version int)");
      const outcome = await sync({ from: at, object: table, to: kept, table: "seen" });
      expect(outcome.error).toBeNull();
      const [row] = await client.query(
        "SELECT string_agg(DISTINCT version::text, ',') || CASE count(*) WHEN 0 THEN 'none' ELSE '' END AS s, count(*) AS n FROM seen",
      );
      expect(row?.["n"]).toBe(String(rows));
      await client.end();
      return row?.["s"] ?? "";
    }
  });
}

async function fill(url: string, table: string, rows: number, version: number): Promise<void> {
  const client = await connect(url);
  await client.query(
    `DROP TABLE IF EXISTS ${table}; CREATE TABLE ${table} (id int PRIMARY KEY, v bigint, t text, version int); INSERT INTO ${table} SELECT i, ${version} * 10000000::bigint + i, repeat('x', 200), ${version} FROM generate_series(1, ${rows}) i`,
  );
  await client.end();
}

// `once` is called when the first rows have been read, or a moment later.
function run(spec: SyncSpec, once?: () => void): Promise<SyncOutcome> {
  return runSync(spec, {
    openSource: () => openSource(spec.source, []),
    openDestination: () => openDestination(spec.destination),
    onProgress: (progress) => {
      if (progress.phase !== "connect") once?.();
    },
    signal: new AbortController().signal,
  });
}
