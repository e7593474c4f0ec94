// Values of unique columns that pass from one record to another: whoever gave one up must not keep the other from coming.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import mysql from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { mysqlMissing, startMysql } from "#test/mysql.ts";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { openPair, type Pair, sync } from "./harness.ts";

/** A database that is written into: what it holds is told by `id:email`. */
interface Place {
  readonly url: string;
  run(sql: string): Promise<unknown>;
  people(): Promise<string[]>;
  close?(): Promise<void>;
}

const people = "SELECT CONCAT(id, ':', email) AS line FROM people ORDER BY id";
const table = "CREATE TABLE people (id int PRIMARY KEY, email varchar(20) UNIQUE, n int)";

describe.skipIf(postgresMissing())("values that are taken", () => {
  const folder = folderOfFile();
  let pair: Pair;

  beforeAll(async () => {
    pair = await openPair();
  });
  afterAll(() => pair?.close());

  const places: Record<string, () => Promise<Place>> = {
    PostgreSQL: async () => ({
      url: pair.to,
      run: (sql) => pair.target.query(sql),
      people: async () => (await pair.target.query(people)).map(({ line }) => line ?? ""),
    }),
    MySQL: async () => {
      const server = await startMysql();
      const url = await server.createDatabase();
      const client = await mysql.createConnection({ uri: url, multipleStatements: true });
      return {
        url,
        run: (sql) => client.query(sql),
        people: async () => (await client.query<mysql.RowDataPacket[]>(people))[0].map((row) => String(row["line"])),
        close: async () => {
          await client.end();
          await server.stop();
        },
      };
    },
    SQLite: async () => {
      const url = join(folder, "people.sqlite");
      const using = <T>(use: (db: DatabaseSync) => T) => {
        const db = new DatabaseSync(url);
        const result = use(db);
        db.close();
        return result;
      };
      return {
        url,
        run: async (sql) => using((db) => db.exec(sql)),
        people: async () =>
          using((db) =>
            db
              .prepare(people)
              .all()
              .map(({ line }) => String(line)),
          ),
      };
    },
  };

  for (const [name, open] of Object.entries(places))
    test.skipIf(name === "MySQL" && mysqlMissing())(
      `${name}: a record gets the unique value of a row that has gone in the same run, from a database and from a file`,
      async () => {
        const place = await open();
        onTestFinished(() => place.close?.());
        await place.run(table);
        const followed = { mode: "incremental", cursor_field: "n", primary_key: ["id"], deletes: "hard" } as const;
        const { source, from } = pair;
        await source.query(`DROP TABLE IF EXISTS people; ${table}; INSERT INTO people VALUES (1, 'a', 1), (2, 'b', 1)`);
        const ends = { from, object: "people", to: place.url, table: "people" };
        expect((await sync(ends, followed)).error).toBeNull();
        for (const [on_bad_record, n] of [
          ["quarantine", 2],
          ["fail", 3],
        ] as const) {
          // 1 goes and 3 comes with its value; 2 is called otherwise from now on. And back.
          await source.query(
            n === 2
              ? "DELETE FROM people WHERE id = 1; INSERT INTO people VALUES (3, 'a', 2); UPDATE people SET id = 4, n = 2 WHERE id = 2"
              : "DELETE FROM people WHERE id = 3; INSERT INTO people VALUES (1, 'a', 3); UPDATE people SET id = 2, n = 3 WHERE id = 4",
          );
          expect(await sync(ends, { ...followed, on_bad_record })).toMatchObject({
            error: null,
            records_read: 2,
            records_synced: 2,
            records_rejected: 0,
          });
          expect(await place.people()).toEqual(n === 2 ? ["3:a", "4:b"] : ["1:a", "2:b"]);
        }
        // What another row has that stays is refused as before.
        await place.run("UPDATE people SET email = 'c' WHERE id = 2");
        await source.query("DELETE FROM people WHERE id = 1; INSERT INTO people VALUES (5, 'c', 4)");
        expect(await sync(ends, { ...followed, on_bad_record: "fail" })).toMatchObject({
          error: { code: "bad_record", message: expect.stringMatching(/^Record 5/) },
        });
        expect(await place.people()).toEqual(["1:a", "2:c"]);

        const file = join(folder, "people.csv");
        for (const lines of ["1,a,1\n2,c,1\n", "3,a,2\n2,c,1\n"]) {
          writeFileSync(file, `id,email,n\n${lines}`);
          expect(await sync({ ...ends, from: file }, followed)).toMatchObject({ error: null, records_rejected: 0 });
        }
        expect(await place.people()).toEqual(["2:c", "3:a"]);
      },
    );

  for (const [name, open] of Object.entries(places))
    test.skipIf(name === "MySQL" && mysqlMissing())(
      `${name}: unique values move on from row to row, and a key's last record counts whatever was held back of it`,
      async () => {
        const place = await open();
        onTestFinished(() => place.close?.());
        const { source, from } = pair;
        await place.run(`DROP TABLE IF EXISTS people; ${table}`);
        await source.query(
          "DROP TABLE IF EXISTS people; CREATE TABLE people (id int PRIMARY KEY, email text, n int); INSERT INTO people SELECT i, 100 + i, 0 FROM generate_series(1, 40) i",
        );
        const ends = { from, object: "people", to: place.url, table: "people" };
        const incremental = { mode: "incremental", cursor_field: "n", primary_key: ["id"] } as const;
        for (const step of [0, 1, -1]) {
          await source.query(`UPDATE people SET email = email::int + ${step}, n = n + 1`);
          for (const on_bad_record of ["fail", "quarantine"] as const)
            expect(await sync(ends, { ...incremental, on_bad_record })).toMatchObject({
              error: null,
              records_rejected: 0,
            });
          expect(await place.people()).toEqual((await source.query(people)).map(({ line }) => line));
        }
        // 1 wants what 2 has, then something else; 3 wants what 2 gives up at last, and 5 what 4 keeps.
        const file = join(folder, `${name}.jsonl`);
        const lines = [
          [1, 102, 1],
          [1, "first", 2],
          [3, 102, 3],
          [5, 104, 4],
          [2, "second", 5],
        ].map(([id, email, n]) => JSON.stringify({ id, email: String(email), n }));
        writeFileSync(file, `${lines.join("\n")}\n`);
        expect(await sync({ ...ends, from: file }, incremental)).toMatchObject({
          error: null,
          records_rejected: 1,
          rejects: [{ key: "5" }],
        });
        expect((await place.people()).slice(0, 5)).toEqual(["1:first", "2:second", "3:102", "4:104", "5:105"]);
      },
    );

  test("PostgreSQL: unique values that move on from row to row arrive in a table that cannot be filled anew", async () => {
    const { source, target, from, to } = pair;
    await source.query(
      "CREATE TABLE places (id int PRIMARY KEY, place int); INSERT INTO places SELECT i, i FROM generate_series(1, 50) i",
    );
    await target.query("CREATE TABLE places (id int PRIMARY KEY, place int UNIQUE)");
    const ends = { from, object: "places", to, table: "places" };
    expect((await sync(ends)).error).toBeNull();
    await target.query("CREATE TABLE visits (id int REFERENCES places); INSERT INTO visits VALUES (1), (50)");
    for (const [mode, step] of [
      ["incremental", "+ 1"],
      ["full_refresh", "+ 1"],
      ["incremental", "- 1"],
    ] as const) {
      await source.query(`UPDATE places SET place = place ${step}`);
      expect(await sync(ends, { mode, cursor_field: mode === "incremental" ? "id" : null })).toMatchObject({
        error: null,
        records_synced: 50,
        records_rejected: 0,
      });
      expect(await target.lines("places")).toEqual(await source.lines("places"));
    }
  });
});
