// Primary keys that were asked for, which neither the source nor, perhaps, the destination's table vouches for: the same rows stay
// whatever the two ends are.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import mysql from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mysqlMissing, startMysql, type TestMysql } from "#test/mysql.ts";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { openPair, type Pair, sync } from "./harness.ts";

describe.skipIf(postgresMissing() || mysqlMissing())("asked-for keys", () => {
  const folder = folderOfFile();
  const lite = join(folder, "to.sqlite");
  let pair: Pair;
  let server: TestMysql;
  let my: string;
  let client: mysql.Connection;
  const places: Record<string, string> = {};

  // The newest version of key 1 stands before an older one, but in the file; one row has no key.
  const rows = "(1, 3, 'new'), (1, 1, 'old'), (2, 1, 'x'), (NULL, 1, 'none')";
  beforeAll(async () => {
    [pair, server] = await Promise.all([openPair(), startMysql()]);
    my = await server.createDatabase("src");
    client = await mysql.createConnection({ uri: my, multipleStatements: true });
    const made = `CREATE TABLE h (id int, c int, v varchar(9)); INSERT INTO h VALUES ${rows}`;
    await Promise.all([pair.source.query(made), client.query(made), client.query("CREATE DATABASE dst")]);
    const db = new DatabaseSync(join(folder, "from.sqlite"));
    db.exec(made);
    db.close();
    writeFileSync(
      join(folder, "from.jsonl"),
      [...rows.matchAll(/\((\w+), (\d), '(\w+)'\)/g)]
        .sort(([, , a], [, , b]) => Number(a) - Number(b))
        .map(([, id, c, v]) => `{"id":${id?.toLowerCase()},"c":${c},"v":"${v}"}\n`)
        .join(""),
    );
    Object.assign(places, {
      postgres: pair.from,
      mysql: my,
      sqlite: join(folder, "from.sqlite"),
      jsonl: join(folder, "from.jsonl"),
    });
  });
  afterAll(async () => {
    await client?.end();
    await Promise.all([pair?.close(), server?.stop()]);
  });

  const ends: Readonly<Record<string, { url(table: string): string; run(sql: string): Promise<unknown[]> }>> = {
    postgres: { url: () => pair.to, run: (sql) => pair.target.query(sql) },
    mysql: {
      url: () => my.replace("/src", "/dst"),
      run: async (sql) => (await client.query(sql.replace(/(TABLE|FROM) /, "$1 dst.")))[0] as unknown[],
    },
    sqlite: {
      url: () => lite,
      run: async (sql) => {
        const db = new DatabaseSync(lite);
        const found = db.prepare(sql).all();
        db.close();
        return found;
      },
    },
  };

  for (const [from, to] of [
    ["postgres", "postgres"],
    ["postgres", "mysql"],
    ["postgres", "sqlite"],
    ["mysql", "mysql"],
    ["sqlite", "sqlite"],
    ["jsonl", "mysql"],
  ] as const)
    test(`${from} to ${to}: of one key the newest version, or the last record of a full refresh; none without a key`, async () => {
      const end = ends[to] as (typeof ends)[string];
      for (const there of ["", "int", "int UNIQUE"])
        for (const mode of ["incremental", "full_refresh"] as const) {
          const table = `k_${from}_${mode}_${there.length}`;
          if (there !== "") await end.run(`CREATE TABLE ${table} (id ${there}, c int, v varchar(9))`);
          const ask = { mode, cursor_field: "c", primary_key: ["id"] };
          for (let run = 0; run < 2; run++) {
            const outcome = await sync({ from: places[from] as string, object: "h", to: end.url(table), table }, ask);
            const unsure = to === "mysql" && there === "int" && mode === "full_refresh";
            expect(outcome.error?.code).toBe(unsure ? "destination_refused" : undefined);
            if (unsure) continue;
            const seen = (await end.run(`SELECT id, v FROM ${table}`)) as { id: unknown; v: string }[];
            expect(seen.map(({ id, v }) => `${id} ${v}`).sort()).toEqual([
              mode === "incremental" || from === "jsonl" ? "1 new" : "1 old",
              "2 x",
            ]);
            if (mode === "full_refresh") expect(outcome.records_rejected).toBe(2);
          }
        }
    });

  test("a full refresh that marks what has gone keeps the last record of each key, with a unique key there and without", async () => {
    await pair.source.query(
      "CREATE TABLE marked (id int, v text); INSERT INTO marked VALUES (1, 'a'), (2, 'x'), (1, 'b'), (3, 'y'), (3, 'z')",
    );
    for (const to of ["postgres", "mysql", "sqlite"] as const)
      for (const there of ["", "int", "int UNIQUE"]) {
        const end = ends[to] as (typeof ends)[string];
        const table = `marked_${there.length}`;
        if (there !== "") await end.run(`CREATE TABLE ${table} (id ${there}, v varchar(9))`);
        for (let run = 0; run < 2; run++) {
          const outcome = await sync(
            { from: pair.from, object: "marked", to: end.url(table), table },
            { primary_key: ["id"], deletes: "soft" },
          );
          expect(outcome.error).toBeNull();
          expect(outcome.rejects.map(({ key, column }) => `${key} ${column}`).sort()).toEqual(["1 id", "3 id"]);
          const seen = (await end.run(`SELECT id, v FROM ${table} WHERE _magic_deleted_at IS NULL`)) as {
            id: unknown;
            v: string;
          }[];
          expect(seen.map(({ id, v }) => `${id} ${v}`).sort()).toEqual(["1 b", "2 x", "3 z"]);
        }
      }
  });

  test("a row that was marked as gone and comes back is marked no longer, though deletions are not followed any more", async () => {
    await pair.source.query("CREATE TABLE back (id int PRIMARY KEY, c int)");
    for (const to of ["postgres", "mysql", "sqlite"] as const) {
      const end = ends[to] as (typeof ends)[string];
      await pair.source.query("TRUNCATE back; INSERT INTO back VALUES (1, 1), (2, 1)");
      for (const [deletes, change] of [
        ["soft", "DELETE FROM back WHERE id = 2"],
        ["soft", "INSERT INTO back VALUES (2, 2)"],
        ["ignore", ""],
      ] as const) {
        const { error } = await sync(
          { from: pair.from, object: "back", to: end.url("back"), table: "back" },
          { mode: "incremental", cursor_field: "c", deletes },
        );
        expect(error).toBeNull();
        if (change !== "") await pair.source.query(change);
      }
      const marks = (await end.run("SELECT _magic_deleted_at AS mark FROM back")) as { mark: unknown }[];
      expect(marks, to).toEqual([{ mark: null }, { mark: null }]);
    }
  });

  test("rows that an earlier run marked as gone are not counted by one that leaves deletions alone", async () => {
    await pair.source.query("CREATE TABLE gone (id int PRIMARY KEY, c int)");
    for (const to of ["postgres", "mysql", "sqlite"] as const) {
      await pair.source.query("TRUNCATE gone; INSERT INTO gone VALUES (1, 1), (2, 1)");
      const run = (deletes: "soft" | "ignore") =>
        sync(
          { from: pair.from, object: "gone", to: ends[to]?.url("gone") ?? "", table: "gone" },
          { mode: "incremental", cursor_field: "c", deletes },
        );
      await run("soft");
      await pair.source.query("DELETE FROM gone WHERE id = 2; UPDATE gone SET c = 2");
      for (const deletes of ["soft", "ignore", "ignore"] as const) {
        const { proof } = await run(deletes);
        expect([to, proof]).toMatchObject([to, { source_count: 1, destination_count: 1 }]);
      }
    }
  });

  test("whoever follows deletions from now on follows those of before, though nothing has happened at the source since", async () => {
    await pair.source.query("CREATE TABLE late (id int PRIMARY KEY); INSERT INTO late VALUES (1), (2)");
    const run = (deletes: "ignore" | "hard") =>
      sync(
        { from: pair.from, object: "late", to: lite, table: "late" },
        { mode: "incremental", cursor_field: "id", deletes },
      );
    await run("ignore");
    await pair.source.query("DELETE FROM late WHERE id = 2");
    await run("ignore");
    expect(await run("ignore")).toMatchObject({ error: null, changed: false });
    expect(await run("hard")).toMatchObject({ error: null, changed: true });
    expect(await ends["sqlite"]?.run("SELECT id FROM late")).toEqual([{ id: 1 }]);
    expect(await run("hard")).toMatchObject({ error: null, changed: false });
  });

  test("a full refresh that marks leaves gone rows their values, and the others none in a column that is read no longer", async () => {
    const rest: Record<string, string> = {
      left_plain: "",
      left_view: "CREATE VIEW left_seen AS SELECT id FROM left_view",
      left_referred: "CREATE TABLE left_refers (id int REFERENCES left_referred); INSERT INTO left_refers VALUES (1)",
    };
    for (const [to, tables] of [
      ["postgres", Object.keys(rest)],
      ["mysql", ["left_plain"]],
      ["sqlite", ["left_plain"]],
    ] as const)
      for (const table of tables) {
        const end = ends[to] as (typeof ends)[string];
        await pair.source.query(
          "CREATE TABLE IF NOT EXISTS lefts (id int PRIMARY KEY); ALTER TABLE lefts ADD a int, ADD b int; INSERT INTO lefts VALUES (1, 1, 1), (2, 2, 2)",
        );
        const run = (reset: boolean) =>
          sync({ from: pair.from, object: "lefts", to: end.url(table), table }, { deletes: "soft", reset });
        expect((await run(false)).error).toBeNull();
        if (to === "postgres" && rest[table]) await end.run(rest[table]);
        await pair.source.query("DELETE FROM lefts WHERE id = 2; ALTER TABLE lefts DROP a");
        for (let times = 0; times < 2; times++) {
          expect((await run(true)).error).toBeNull();
          const rows = (await end.run(`SELECT id, a, b, _magic_deleted_at FROM ${table} ORDER BY id`)) as object[];
          const seen = rows.map((row) => Object.values(row).map((value) => (value === null ? null : String(value))));
          expect(seen, table).toEqual([
            ["1", null, "1", null],
            ["2", "2", "2", expect.any(String)],
          ]);
        }
        await pair.source.query("ALTER TABLE lefts DROP b; TRUNCATE lefts");
      }
  });

  test("a full refresh of which every record is rejected leaves the rows that are there, and completes where there are none", async () => {
    await pair.source.query(
      "CREATE TABLE keyless (id int, v text); INSERT INTO keyless VALUES (NULL, 'a'), (NULL, 'b')",
    );
    for (const to of ["postgres", "mysql", "sqlite"] as const)
      for (const deletes of ["hard", "soft"] as const) {
        const end = ends[to] as (typeof ends)[string];
        const table = `kept_${deletes}`;
        const run = (object: string) =>
          sync(
            { from: pair.from, object, to: end.url(table), table },
            { primary_key: ["id"], columns: ["id"], deletes },
          );
        expect(await run("keyless")).toMatchObject({ status: "completed", records_read: 2, records_rejected: 2 });
        await end.run(`INSERT INTO ${to === "mysql" ? "dst." : ""}${table} (id) VALUES (7)`);
        const failed = { status: "failed", records_read: 2, records_synced: 0, records_rejected: 2 };
        expect(await run("keyless")).toMatchObject({ ...failed, error: { code: "all_rejected" } });
        expect(await end.run(`SELECT * FROM ${table}`)).toMatchObject([
          { id: to === "postgres" ? "7" : 7, ...(deletes === "soft" && { _magic_deleted_at: null }) },
        ]);
      }
    const file = join(folder, "kept.jsonl");
    writeFileSync(file, '{"id":7}\n');
    const outcome = await sync(
      { from: pair.from, object: "keyless", to: file, table: "kept" },
      { primary_key: ["id"] },
    );
    expect(outcome.error?.code).toBe("all_rejected");
    expect(readFileSync(file, "utf8")).toBe('{"id":7}\n');
  });

  test("where every record is refused for a former key that nothing is read into any more, it is named with what to do", async () => {
    for (const to of ["mysql", "sqlite"] as const) {
      const table = `renamed_${to}`;
      await pair.source.query(`CREATE TABLE ${table} (id int PRIMARY KEY, v int); INSERT INTO ${table} VALUES (1, 1)`);
      const run = (more = {}) => sync({ from: pair.from, object: table, to: ends[to]?.url(table) ?? "", table }, more);
      expect((await run()).error).toBeNull();
      await pair.source.query(`ALTER TABLE ${table} RENAME id TO number`);
      expect((await run()).error?.code).toBe("schema_drift");
      const { error, rejects } = await run({ reset: true });
      expect(rejects).toMatchObject([{ key: "1", column: "id" }]);
      expect(error).toMatchObject({
        code: "all_rejected",
        message: expect.stringMatching(/"id" any more: drop the column/),
      });
    }
  });

  test("the newest version is told by what a cursor's values are, also where they lie in a column of texts", async () => {
    const file = join(folder, "versions.csv");
    const versions = [
      ["1,9,old", "1,10,new", "2,10,new", "2,9,old"],
      ["1,2024-01-01T01:30:00+02:00,old", "1,2024-01-01T00:00:00Z,new", "2,2024-01-01,new"],
      ["1,2024-02-31,new", "1,2024-02-30,old", "2,2024-01-01,new"],
    ];
    for (const [at, rows] of versions.entries())
      for (const there of [false, true]) {
        const table = `versions_${at}_${there}`;
        if (there) await pair.target.query(`CREATE TABLE ${table} (id text, c text, v text)`);
        writeFileSync(file, `id,c,v\n${rows.join("\n")}\n`);
        const ask = { mode: "incremental", cursor_field: "c", primary_key: ["id"] } as const;
        expect((await sync({ from: file, object: "versions", to: pair.to, table }, ask)).error).toBeNull();
        expect((await pair.target.query(`SELECT id, v FROM ${table} ORDER BY id`)).map(({ v }) => v)).toEqual([
          "new",
          "new",
        ]);
      }
  });

  test("JSON Lines keep the newest version of a table's rows as well", async () => {
    const to = join(folder, "to.jsonl");
    const ask = { mode: "incremental", cursor_field: "c", primary_key: ["id"] } as const;
    expect((await sync({ from: pair.from, object: "h", to, table: "h" }, ask)).error).toBeNull();
    expect(readFileSync(to, "utf8")).toBe('{"id":2,"c":1,"v":"x"}\n{"id":1,"c":3,"v":"new"}\n');
  });

  test("of a row whose key only a collation takes for another nothing is changed, with a unique key there and without", async () => {
    await pair.source.query(
      "CREATE TABLE cases (id text PRIMARY KEY, c int); INSERT INTO cases VALUES ('a', 1), ('A', 2)",
    );
    const ask = { mode: "incremental", cursor_field: "c" } as const;
    await pair.target.query(
      "CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    );
    for (const [to, type] of [
      ["postgres", "text COLLATE no_case"],
      ["mysql", "varchar(9) COLLATE utf8mb4_general_ci"],
      ["sqlite", "text COLLATE NOCASE"],
    ] as const)
      for (const unique of ["", "UNIQUE"]) {
        const end = ends[to] as (typeof ends)[string];
        const table = `cases_${unique.toLowerCase()}`;
        await end.run(`CREATE TABLE ${table} (id ${type} ${unique}, c int)`);
        for (let run = 0; run < 2; run++) {
          const outcome = await sync({ from: pair.from, object: "cases", to: end.url(table), table }, ask);
          expect(outcome.error).toBeNull();
          const seen = (await end.run(`SELECT id, c FROM ${table}`)) as { id: string; c: number }[];
          expect(seen.map(({ id, c }) => `${id}${c}`).sort()).toEqual(
            unique || to === "postgres" ? ["a1"] : ["A2", "a1"],
          );
        }
        await pair.source.query("UPDATE cases SET c = c");
      }
  });

  test("without a unique key there rows are updated where they are: their own columns stay, doubles become one, a refused row changes nothing", async () => {
    for (const to of ["postgres", "mysql", "sqlite"] as const) {
      const end = ends[to] as (typeof ends)[string];
      await pair.source.query(`DROP TABLE IF EXISTS ours; CREATE TABLE ours (a varchar(9), b int, c int, v varchar(9), w varchar(9));
        INSERT INTO ours VALUES ('x', 1, 1, 'x1', 'w'), ('x', 2, 1, 'x2', 'w'), ('X', 1, 1, 'y1', 'w'), ('d', 1, 1, 'd1', 'w'), ('e', 1, 1, 'o5', 'w')`);
      await end.run(
        "CREATE TABLE own (note varchar(9) DEFAULT 'none', a varchar(9), b int, c int, v varchar(9) UNIQUE, w varchar(9))",
      );
      const there = [
        "mine', 'x', 1",
        "too', 'd', 1",
        "two', 'd', 1",
        "e1', 'e', 1",
        "e2', 'e', 1",
        "far', 'z', 1",
        "null', 'x', NULL",
      ];
      const rows = there.map((row, at) => `('${row}, 0, 'o${at}', 'old')`).join(", ");
      await end.run(`INSERT INTO ${to === "mysql" ? "dst." : ""}own VALUES ${rows}`);
      const run = async (rejected: string[]) => {
        const outcome = await sync(
          { from: pair.from, object: "ours", to: end.url("own"), table: "own" },
          { mode: "incremental", cursor_field: "c", primary_key: ["a", "b"], columns: ["a", "b", "c", "v"] },
        );
        expect([outcome.error, outcome.rejects.map(({ key }) => key)]).toEqual([null, rejected]);
        const seen = (await end.run("SELECT * FROM own")) as Record<string, unknown>[];
        return seen.map(({ note, a, b, v, w }) => [note, a, b, v, w].join(" ")).sort();
      };
      const kept = ["e1 e 1 o3 old", "e2 e 1 o4 old", "far z 1 o5 old", "null x  o6 old"];
      const came = ["none X 1 y1 ", "none d 1 d1 ", "none x 2 x2 "];
      expect(await run(["e,1"]), to).toEqual([...kept, ...came, "mine x 1 x1 old"].sort());
      await pair.source.query("UPDATE ours SET c = 2, v = 'new' WHERE (a, b) = ('x', 1)");
      expect(await run([]), to).toEqual([...kept, ...came, "mine x 1 new old"].sort());
    }
  });
});
