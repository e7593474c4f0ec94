// Cursor fields whose values are missing, of several kinds, or such that a plain comparison of texts gets them wrong: every record is
// read, or the run says that it cannot tell.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { openPair, type Pair, sync } from "./harness.ts";

describe.skipIf(postgresMissing())("cursors", () => {
  const folder = folderOfFile();
  let pair: Pair;
  let made = 0;

  beforeAll(async () => {
    pair = await openPair();
  });
  afterAll(() => pair?.close());

  const incremental = (from: string, object: string, table: string, more = {}) =>
    sync({ from, object, to: pair.to, table }, { mode: "incremental", cursor_field: "c", ...more });
  const ids = async (table: string) => (await pair.target.lines(table, "id")).map((line) => Number(line.slice(1, -1)));

  const keyed = { primary_key: ["id"] };
  const files: readonly (readonly [what: string, first: string, then: string, more: object])[] = [
    ["a fraction before a Z", '"12:00:00Z"', '"12:00:00.5Z"', {}],
    ["offsets", '"12:00:00+02:00"', '"11:00:00Z"', {}],
    ["times before and after 1970", '"1969-12-31T23:59:59.5Z"', '"1970-01-01T00:00:00Z"', {}],
    ["a year that no calendar has", '"2024-01-01"', `"${"9".repeat(400)}-01-01"`, {}],
    ["numbers with an exponent", "1600000000", "1.7e9", {}],
    ["numbers of different length", "9", "10", {}],
    ["a second record without a cursor, by a key", "null", "null", keyed],
    ["the same value again, by a key", '"x"', '"x"', keyed],
  ];
  for (const [what, first, then, more] of files)
    test(`JSON Lines: ${what}`, async () => {
      const table = `file_${++made}`;
      const path = join(folder, `${table}.jsonl`);
      const line = (id: number, value: string) => `{"id":${id},"c":${value.replace(/^"(\d\d:)/, '"2024-01-01T$1')}}\n`;
      await pair.target.query(`CREATE TABLE ${table} (id int, c text)`);
      writeFileSync(path, line(1, first));
      expect((await incremental(path, "x", table, more)).error).toBeNull();
      appendFileSync(path, line(2, then));
      expect((await incremental(path, "x", table, more)).error).toBeNull();
      expect(await ids(table)).toEqual([1, 2]);
    });

  test("SQLite: times of several forms are compared as instants, each read once without a key", async () => {
    const path = join(folder, "forms.sqlite");
    const db = new DatabaseSync(path);
    for (const [table, more] of [
      ["forms_once", {}],
      ["forms_keyed", keyed],
    ] as const) {
      db.exec("DROP TABLE IF EXISTS x; CREATE TABLE x (id INT, c datetime)");
      // The same hour twice, as the clock is set back; a fraction before a Z; a blank behind a T; another offset.
      for (const times of [
        ["2024-10-27 02:30:00+02:00"],
        ["2024-10-27 02:10:00+01:00", "2024-10-27T01:10:05Z"],
        ["2024-10-27T01:10:05.5Z", "2024-10-27 01:10:06", "2024-10-26T16:10:07.000000001-09:00"],
        ["2024-10-27T01:10:08Z"],
        ["2024-10-27T01:10:09Z", "2024-10-27T01:10:10Z"],
      ]) {
        for (const time of times) db.prepare("INSERT INTO x SELECT count(*) + 1, ? FROM x").run(time);
        const { error, records_read } = await incremental(path, "x", table, more);
        expect(error).toBeNull();
        expect(records_read - times.length).toBeLessThanOrEqual(more === keyed ? 1 : 0);
        const there = db.prepare("SELECT id FROM x ORDER BY id").all();
        expect(await ids(table)).toEqual(there.map(({ id }) => id));
      }
    }
    db.close();
  });

  test("numbers and times kept as texts are read in the order of what they name, or refused before any is left out", async () => {
    const path = join(folder, "texts.sqlite");
    const db = new DatabaseSync(path);
    await pair.source.query(
      "CREATE TABLE texts_base (id int, c varchar(40)); CREATE VIEW texts AS SELECT * FROM texts_base",
    );
    const fill = async (values: readonly string[], from: number) => {
      for (const [at, value] of values.entries()) {
        db.prepare("INSERT INTO texts VALUES (?, ?)").run(from + at, value);
        await pair.source.query(`INSERT INTO texts_base VALUES (${from + at}, '${value}')`);
      }
    };
    const numbers = [["8", "9"], ["10", "11"], ["12345678901234567890123"], ["12345678901234567890124"]];
    const padded = [["0098", "0099"], ["0100"]];
    const times = [
      ["2024-01-01T10:00:00Z"],
      ["2024-01-01T10:00:00.5Z"],
      ["2024-01-01 10:00:01", "2024-01-01T09:00:01-02:00"],
    ];
    for (const [what, values, more, refused] of [
      ["whole", numbers, {}, null],
      ["whole_keyed", numbers.slice(0, 2), keyed, null],
      ["padded", padded, {}, null],
      ["beyond", [["98", "99"], ["0100"]], {}, "numbers"],
      ["points", [["9.5"], ["10.5"]], keyed, "numbers"],
      ["words_at_once", [[], ["9", "10", "n/a"]], {}, "numbers"],
      ["words_of_time", [["2024-01-01"], ["unknown"]], keyed, "times"],
      ["hexadecimal", [["0199", "01ab"], ["01ff", "0200"], ["9900"], ["9912", "99ab"]], {}, null],
      ["times_keyed", times, keyed, null],
      ["times", times.slice(0, 2), {}, "times"],
    ] as const) {
      db.exec("DROP TABLE IF EXISTS texts; CREATE TABLE texts (id INT, c TEXT)");
      await pair.source.query("TRUNCATE texts_base");
      let filled = 0;
      for (const some of values) {
        await fill(some, filled);
        filled += some.length;
        for (const from of [path, pair.from]) {
          // SQLite's times are compared as instants.
          if (what === "times" && from === path) continue;
          const table = `texts_${what}_${from === path ? "lite" : "view"}`;
          const { error, records_read } = await incremental(from, "texts", table, more);
          if (refused !== null && some === values.at(-1)) {
            const message = expect.stringContaining(`whose order is not that of ${refused}`);
            expect([table, error]).toMatchObject([table, { code: "validation_failed", message }]);
          } else {
            expect([table, error]).toEqual([table, null]);
            if (more !== keyed) expect([table, records_read]).toEqual([table, some.length]);
            expect([table, (await ids(table)).length]).toEqual([table, filled]);
          }
        }
      }
    }
    db.close();
  });

  // What .NET writes where there is no time.
  test("SQLite: times of the first day that there is are looked back over, also where later ones have another form", async () => {
    const path = join(folder, "zero.sqlite");
    const db = new DatabaseSync(path);
    db.exec("CREATE TABLE x (id INTEGER PRIMARY KEY, c text); INSERT INTO x VALUES (1, '0001-01-01 00:00:00')");
    await incremental(path, "x", "zero", keyed);
    db.exec("INSERT INTO x VALUES (2, '0001-01-01 00:00:00'), (3, '2024-01-01T00:00:00Z')");
    await incremental(path, "x", "zero", keyed);
    expect(await ids("zero")).toEqual([1, 2, 3]);
    db.close();
  });

  test("without a key, records without a cursor are read once, and said to be", async () => {
    const path = join(folder, "none.jsonl");
    writeFileSync(path, '{"id":1,"c":null}\n');
    const db = new DatabaseSync(join(folder, "none.sqlite"));
    db.exec("CREATE TABLE x (id INT, c INT); INSERT INTO x VALUES (1, NULL)");
    await pair.source.query("CREATE VIEW x AS SELECT 1 AS id, NULL::int AS c");
    for (const [from, table] of [
      [path, "none_file"],
      [join(folder, "none.sqlite"), "none_lite"],
      [pair.from, "none_view"],
    ] as const) {
      for (let run = 0; run < 2; run++)
        expect(await incremental(from, "x", table)).toMatchObject({ error: null, warnings: [{ code: "null_cursor" }] });
      expect(await ids(table)).toEqual([1]);
    }
    db.close();
  });

  test("with a key, rows without a cursor are found whenever they come", async () => {
    const db = new DatabaseSync(join(folder, "late.sqlite"));
    db.exec("CREATE TABLE y (id INTEGER PRIMARY KEY, c INT); INSERT INTO y VALUES (1, 1), (2, NULL)");
    await pair.source.query(
      "CREATE TABLE y_base AS SELECT 1 AS id, 1 AS c UNION SELECT 2, NULL; CREATE VIEW y AS SELECT * FROM y_base",
    );
    const both = async () => {
      for (const [from, table] of [
        [join(folder, "late.sqlite"), "late_lite"],
        [pair.from, "late_view"],
      ] as const)
        expect(await incremental(from, "y", table, keyed)).toMatchObject({ error: null, warnings: [] });
    };
    await both();
    db.exec("INSERT INTO y VALUES (3, NULL)");
    await pair.source.query("INSERT INTO y_base VALUES (3, NULL)");
    await both();
    expect([await ids("late_lite"), await ids("late_view")]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    db.close();
  });

  test("what takes the object's place with lower cursors is read by a key, and told of without one", async () => {
    const path = join(folder, "anew.jsonl");
    const lite = join(folder, "anew.sqlite");
    const fill = async (...rows: readonly (readonly [id: number, c: number | null])[]) => {
      writeFileSync(path, rows.map(([id, c]) => `{"id":${id},"c":${c}}\n`).join(""));
      const values = rows.map(([id, c]) => `(${id}, ${c})`).join(", ");
      const db = new DatabaseSync(lite);
      db.exec(`DROP TABLE IF EXISTS x; CREATE TABLE x (id INT, c INT); INSERT INTO x VALUES ${values}`);
      db.close();
      await pair.source.query(`CREATE OR REPLACE VIEW anew AS SELECT * FROM (VALUES ${values}) v (id, c)`);
    };
    const ends = [
      [path, "x", "anew_file"],
      [lite, "x", "anew_lite"],
      [pair.from, "anew", "anew_view"],
    ] as const;
    for (const [more, warnings, there] of [
      [keyed, [], [1, 2, 3, 4, 5, 6]],
      [{}, [{ code: "cursor_went_back" }], [1, 2]],
    ] as const) {
      await fill([1, 1_000_000], [2, 2_000_000]);
      for (const [from, object, table] of ends) {
        const name = `${table}_${there.length}`;
        expect([table, await incremental(from, object, name, more)]).toMatchObject([table, { error: null }]);
      }
      await fill([3, 5], [4, 6], [5, more === keyed ? null : 6]);
      for (const [from, object, table] of ends)
        expect([table, await incremental(from, object, `${table}_${there.length}`, more)]).toMatchObject([
          table,
          { error: null, warnings, records_read: more === keyed ? 3 : 0 },
        ]);
      await fill([3, 5], [4, 6], [6, 7]);
      for (const [from, object, table] of ends) {
        if (more !== keyed) continue;
        expect((await incremental(from, object, `${table}_${there.length}`, more)).error).toBeNull();
        expect([table, await ids(`${table}_${there.length}`)]).toEqual([table, there]);
      }
    }
  });

  test("numbers of every type are looked back over where the server does not tell which rows are new", async () => {
    await pair.source.query(
      "CREATE TABLE z_base (id int, n numeric, f float8, r real); CREATE VIEW z AS SELECT * FROM z_base",
    );
    for (const cursor_field of ["id", "n", "f", "r"]) {
      await pair.source.query("TRUNCATE z_base; INSERT INTO z_base VALUES (20000, 20000.5, 20000.5, 20000.5)");
      const run = () => incremental(pair.from, "z", `late_${cursor_field}`, { ...keyed, cursor_field });
      expect((await run()).error).toBeNull();
      await pair.source.query("INSERT INTO z_base VALUES (15000, 15000.5, 15000.5, 15000.5), (5, 5, 5, 5)");
      expect((await run()).error).toBeNull();
      expect(await ids(`late_${cursor_field}`), cursor_field).toEqual([15_000, 20_000]);
    }
  });

  test("values without a common order, and values after which nothing can come, fail the run before anything is left out", async () => {
    const path = join(folder, "mixed.csv");
    writeFileSync(path, "id,c\n1,10\n2,n/a\n3,20\n");
    const db = new DatabaseSync(join(folder, "mixed.sqlite"));
    db.exec(
      "CREATE TABLE z (id INTEGER PRIMARY KEY, c); INSERT INTO z VALUES (1, 10), (2, 'n/a'); CREATE TABLE e (id INT, c REAL); INSERT INTO e VALUES (1, 9e999)",
    );
    db.close();
    await pair.source.query("CREATE VIEW e AS SELECT 1 AS id, 'infinity'::timestamptz AS c");
    for (const [from, object, words] of [
      [path, "x", 'holds both "10" and "n/a"'],
      [join(folder, "mixed.sqlite"), "z", "holds both 10 (integer) and n/a (text)"],
      [join(folder, "mixed.sqlite"), "e", "holds Infinity"],
      [pair.from, "e", "holds infinity"],
    ] as const)
      expect((await incremental(from, object, "refused")).error).toMatchObject({
        code: "validation_failed",
        message: expect.stringContaining(words),
      });
    // Hexadecimal ids sort as texts, whatever their digits.
    writeFileSync(path, "id,c\n1,0199\n2,01ab\n");
    expect((await incremental(path, "x", "hex")).error).toBeNull();
    appendFileSync(path, "3,0200\n");
    expect((await incremental(path, "x", "hex")).error).toBeNull();
    expect(await ids("hex")).toEqual([1, 2, 3]);
    // What was a number so far.
    writeFileSync(path, "id,c\n1,10\n");
    expect((await incremental(path, "x", "turns")).error).toBeNull();
    appendFileSync(path, "2,n/a\n");
    expect((await incremental(path, "x", "turns")).error?.code).toBe("validation_failed");
  });

  test("a key that the destination cannot hold costs its row alone where deletions are followed", async () => {
    const db = new DatabaseSync(join(folder, "keys.sqlite"));
    db.exec("CREATE TABLE k (id TEXT PRIMARY KEY, c INT); INSERT INTO k VALUES ('1', 1), ('2', 2)");
    await pair.target.query("CREATE TABLE k (id int PRIMARY KEY, c int)");
    expect((await incremental(join(folder, "keys.sqlite"), "k", "k", { deletes: "hard" })).error).toBeNull();
    db.exec("INSERT INTO k VALUES ('abc', 3); DELETE FROM k WHERE id = '1'");
    db.close();
    expect(await incremental(join(folder, "keys.sqlite"), "k", "k", { deletes: "hard" })).toMatchObject({
      error: null,
      records_rejected: 1,
    });
    expect(await ids("k")).toEqual([2]);
  });
});
