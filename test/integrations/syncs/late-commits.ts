// Writers that insert, update and commit late while incremental runs go on: at the end both sides hold the same rows.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { connect, sync } from "./harness.ts";
import { seeded } from "./kill.ts";

export function lateCommits({ seconds, writers, seed }: { seconds: number; writers: number; seed: number }): void {
  describe.skipIf(postgresMissing())(`late commits for ${seconds} s, seed ${seed}`, () => {
    let server: TestPostgres;
    let from: string;
    let to: string;
    beforeAll(async () => {
      server = await startPostgres();
      [from, to] = [await server.createDatabase(), await server.createDatabase()];
    });
    afterAll(() => server?.stop());

    test("nothing is lost and nothing comes twice, with a key and without", async () => {
      const source = await connect(from);
      await source.query(
        "CREATE TABLE keyed (id bigserial PRIMARY KEY, t text, at timestamptz); CREATE TABLE logged (n bigserial, t text)",
      );
      let going = true;
      const writing = Array.from({ length: writers }, (_, at) => write(seeded(seed + at), () => going));
      const run = async () => {
        const outcomes = [
          await sync({ from, object: "keyed", to, table: "keyed" }, { mode: "incremental", cursor_field: "at" }),
          await sync({ from, object: "logged", to, table: "logged" }, { mode: "incremental", cursor_field: "n" }),
        ];
        expect(outcomes.map(({ error }) => error)).toEqual([null, null]);
      };
      const end = performance.now() + seconds * 1000;
      let runs = 0;
      for (; performance.now() < end || runs < 3; runs++) await run();
      going = false;
      await Promise.all(writing);
      await run();
      const target = await connect(to);
      for (const table of ["keyed", "logged"]) expect(await target.lines(table)).toEqual(await source.lines(table));
      expect((await source.lines("keyed")).length).toBeGreaterThan(0);
      await Promise.all([source.end(), target.end()]);
    });

    // Values are drawn at the beginning of a transaction and become visible at its end, some of them in subtransactions.
    async function write(random: () => number, going: () => boolean): Promise<void> {
      const client = await connect(from);
      for (let turn = 0; going(); turn++) {
        await client.query("BEGIN; SELECT now()");
        await pause(random() * 30);
        await client.query("INSERT INTO keyed (t, at) VALUES ('a', now()); INSERT INTO logged (t) VALUES ('a')");
        await client.query(
          "SAVEPOINT s; INSERT INTO keyed (t, at) VALUES ('b', now()); INSERT INTO logged (t) VALUES ('b')",
        );
        await client.query(random() < 0.2 ? "ROLLBACK TO SAVEPOINT s" : "RELEASE SAVEPOINT s");
        if (random() < 0.3)
          await client.query(
            `UPDATE keyed SET t = 'u${turn}', at = now() WHERE id = (SELECT max(id) FROM keyed) - ${Math.floor(random() * 5)}`,
          );
        await pause(random() * (random() < 0.1 ? 1500 : 100));
        await client.query(random() < 0.1 ? "ROLLBACK" : "COMMIT");
      }
      await client.end();
    }
  });
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
