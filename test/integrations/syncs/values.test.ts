// What becomes of values on their way into columns that are there already: of texts, of wider and narrower types, of types with
// readers of their own.
import {
  copyFileSync,
  existsSync,
  lstatSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openSource } from "#daemon/integrations/connectors/open.ts";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { openPair, type Pair, sync } from "./harness.ts";

describe.skipIf(postgresMissing())("values", () => {
  const folder = folderOfFile();
  let pair: Pair;
  let { from, to, source, target } = {} as Pair;

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
  });
  afterAll(() => pair?.close());

  test("what a type's own reader calls a syntax error or an unknown name is a matter of that row", async () => {
    await source.query(
      "CREATE TABLE odd (id int PRIMARY KEY, v text); INSERT INTO odd VALUES (1, 'a:1'), (2, 'a:x'), (3, ''), (4, 'pg_class')",
    );
    for (const [type, good] of [
      ["tsvector", "3"],
      ["regclass", "1"],
    ]) {
      await target.query(`DROP TABLE IF EXISTS odd; CREATE TABLE odd (id int PRIMARY KEY, v ${type})`);
      const outcome = await sync({ from, object: "odd", to, table: "odd" });
      expect([type, outcome]).toMatchObject([type, { error: null, records_synced: Number(good) }]);
      expect(outcome.rejects[0]).toMatchObject({ column: "v" });
    }
  });

  test("into columns of text go the blanks of character(n), addresses without a netmask, booleans as words", async () => {
    await source.query(
      "CREATE TABLE shown (id int PRIMARY KEY, c char(5), a inet, b bool); INSERT INTO shown VALUES (1, 'ab', '::1', true), (2, '', '10.0.0.0/8', false)",
    );
    await target.query("CREATE TABLE shown (id int PRIMARY KEY, c text, a text, b text)");
    const ends = { from, object: "shown", to, table: "shown" };
    const counted = await sync(ends);
    expect(counted).toMatchObject({ status: "completed", proof: { destination_count: 2, checksum: null } });
    expect(await target.lines("shown")).toEqual(['(1,"ab   ",::1,true)', '(2,"     ",10.0.0.0/8,false)']);
    expect(await sync(ends, { columns: ["id", "b"] })).toMatchObject({
      status: "completed",
      proof: { checksum: expect.any(String) },
    });
  });

  test("digits and lengths that a widened column has room for arrive with the widening", async () => {
    for (const [mode, other] of [
      ["incremental", join(folder, "wider.sqlite")],
      ["full_refresh", join(folder, "wider-full.sqlite")],
      ["incremental", join(folder, "wider.parquet")],
      ["full_refresh", join(folder, "wider-full.parquet")],
      ["incremental", to],
      ["full_refresh", to],
    ] as const) {
      const ends = { from, object: "wider", to: other, table: `wider_${mode}` };
      await source.query(
        "DROP TABLE IF EXISTS wider; CREATE TABLE wider (id int PRIMARY KEY, n numeric(5,2), f real, s varchar(3)); INSERT INTO wider VALUES (1, 1.50, 1.5, 'abc')",
      );
      expect(await sync(ends, { mode, cursor_field: "id" })).toMatchObject({ error: null });
      await source.query(
        "ALTER TABLE wider ALTER n TYPE numeric(12,4), ALTER f TYPE float8, ALTER s TYPE text; INSERT INTO wider VALUES (2, 12345678.1234, 0.1, 'longer  ')",
      );
      expect(await sync(ends, { mode, cursor_field: "id" })).toMatchObject({ error: null, records_rejected: 0 });
      const back = { from: other, object: `wider_${mode}`, to, table: "wider_back" };
      expect(await sync(back, { columns: ["id", "n", "f", "s"] })).toMatchObject({ error: null, records_rejected: 0 });
      expect(await target.lines("wider_back")).toEqual(await source.lines("wider"));
      await target.query("DROP TABLE wider_back");
    }
  });

  test("what SQLite keeps in a column of another type arrives as it is, or is quarantined", async () => {
    const lite = join(folder, "kinds.sqlite");
    const db = new DatabaseSync(lite);
    db.exec(`CREATE TABLE ints (id INTEGER PRIMARY KEY, v INT, small INT4); INSERT INTO ints VALUES (1, 'abc', 1), (2, 1.5, 1), (3, 1e30, 1), (4, '', 1), (5, '0x10', 1), (6, 7, 1), (7, 0, 4294967297);
      CREATE TABLE bools (id INTEGER PRIMARY KEY, v BOOLEAN); INSERT INTO bools VALUES (1, 'maybe'), (2, 'True'), (3, 2), (4, 0);
      CREATE TABLE floats (id INTEGER PRIMARY KEY, v REAL, small FLOAT4); INSERT INTO floats VALUES (1, 'x', 1), (2, '', 1), (3, 0.1, 0.1), (4, 9e999, 'NaN'), (5, 1, 0.123456789012)`);
    db.close();
    const through = async (table: string, ending: string) => {
      const middle = join(folder, `${table}.${ending}`);
      const outcome = await sync({ from: lite, object: table, to: middle, table });
      expect(outcome.error).toBeNull();
      expect((await sync({ from: middle, object: table, to: join(folder, "seen.jsonl"), table })).error).toBeNull();
      const kept = readFileSync(join(folder, "seen.jsonl"), "utf8").trim().split("\n");
      return [outcome.rejects.map(({ key }) => key).join(), ...kept.map((line) => line.replaceAll('"', ""))];
    };
    const ints = [
      "{id:1,v:abc,small:1}",
      "{id:2,v:1.5,small:1}",
      "{id:3,v:1e+30,small:1}",
      "{id:4,v:,small:1}",
      "{id:5,v:0x10,small:1}",
      "{id:6,v:7,small:1}",
      "{id:7,v:0,small:4294967297}",
    ];
    expect(await through("ints", "sqlite")).toEqual(["", ...ints]);
    expect(await through("ints", "parquet")).toEqual(["1,2,3,4,5,7", "{id:6,v:7,small:1}"]);
    for (const ending of ["sqlite", "parquet", "jsonl"])
      expect(await through("bools", ending)).toEqual(["1,3", "{id:2,v:true}", "{id:4,v:false}"]);
    expect((await through("floats", "sqlite")).slice(0, 3)).toEqual(["", "{id:1,v:x,small:1}", "{id:2,v:,small:1}"]);
    expect(await through("floats", "parquet")).toEqual([
      "1,2,5",
      "{id:3,v:0.1,small:0.1}",
      "{id:4,v:Infinity,small:NaN}",
    ]);
  });

  test("what a SQLite table's own constraints would leave out, replace or undo without a word is quarantined", async () => {
    const three = join(folder, "three.jsonl");
    writeFileSync(three, '{"id":1,"u":1}\n{"id":2,"u":1}\n{"id":3,"u":3}\n');
    for (const clause of ["IGNORE", "REPLACE", "ROLLBACK"])
      for (const more of [{}, { mode: "incremental", cursor_field: "id", primary_key: ["id"] } as const]) {
        const lite = join(folder, `${clause}${Object.keys(more).length}.sqlite`);
        const db = new DatabaseSync(lite);
        db.exec(`CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE ON CONFLICT ${clause})`);
        const outcome = await sync({ from: three, object: "three", to: lite, table: "t" }, more);
        expect([clause, outcome]).toMatchObject([clause, { error: null, records_synced: 2, records_rejected: 1 }]);
        expect(
          db
            .prepare("SELECT * FROM t")
            .all()
            .map(({ id, u }) => [id, u]),
        ).toEqual([
          [1, 1],
          [3, 3],
        ]);
        db.close();
      }
    const beside = join(folder, "triggered.sqlite");
    const triggered = new DatabaseSync(beside);
    triggered.exec(
      "CREATE TABLE t (id INT PRIMARY KEY, u INT); CREATE TABLE seen (u INT PRIMARY KEY); CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT OR IGNORE INTO seen VALUES (new.u); END",
    );
    const all = await sync({ from: three, object: "three", to: beside, table: "t" });
    expect(all).toMatchObject({ error: null, records_synced: 3, records_rejected: 0 });
    triggered.exec("CREATE TRIGGER o BEFORE INSERT ON t WHEN new.id = 2 BEGIN SELECT raise(IGNORE); END");
    for (const more of [{}, { mode: "incremental", cursor_field: "u", primary_key: ["id"] } as const])
      expect(await sync({ from: three, object: "three", to: beside, table: "t" }, more)).toMatchObject({
        error: null,
        records_synced: 2,
        rejects: [{ reason: expect.stringContaining("a trigger of its own") }],
      });
    triggered.exec("CREATE TABLE kept (id INT, u INT); CREATE VIEW shown AS SELECT * FROM kept");
    triggered.exec(
      "CREATE TRIGGER v INSTEAD OF INSERT ON shown BEGIN INSERT INTO kept VALUES (new.id, new.u); END; CREATE TRIGGER d INSTEAD OF DELETE ON shown BEGIN DELETE FROM kept; END",
    );
    expect(await sync({ from: three, object: "three", to: beside, table: "shown" })).toMatchObject({
      error: null,
      records_synced: 3,
    });
    triggered.close();
    const lite = join(folder, "undone.sqlite");
    const db = new DatabaseSync(lite);
    db.exec(
      "CREATE TABLE t (id INT, u INT); CREATE TRIGGER r BEFORE INSERT ON t WHEN new.id = 2 BEGIN SELECT raise(ROLLBACK, 'no'); END",
    );
    expect(await sync({ from: three, object: "three", to: lite, table: "t" })).toMatchObject({
      error: { code: "destination_refused" },
    });
    expect(db.prepare("SELECT * FROM t").all()).toEqual([]);
    db.close();
  });

  test("a rejected record's key and reason are kept beside the state, whatever characters they hold", async () => {
    const lite = join(folder, "shown.sqlite");
    const db = new DatabaseSync(lite);
    db.exec("CREATE TABLE told (id TEXT PRIMARY KEY, n INT, b BOOLEAN)");
    db.prepare("INSERT INTO told VALUES ('a', 1, 1), ('x' || char(0), 2, 0), ('z', 3, ?)").run(
      `${"z".repeat(59)}\u{1f600}`,
    );
    db.close();
    const outcome = await sync(
      { from: lite, object: "told", to, table: "told" },
      { mode: "incremental", cursor_field: "n" },
    );
    expect(outcome).toMatchObject({ error: null, records_synced: 1, records_rejected: 2 });
    expect(outcome.rejects.map(({ key }) => key).sort()).toEqual(["x\ufffd", "z"]);
  });

  test("a text of a SQLite file in UTF-16 may hold a replacement character", async () => {
    const lite = join(folder, "wide.sqlite");
    for (const encoding of ["UTF-16le", "UTF-16be"]) {
      rmSync(lite, { force: true });
      const db = new DatabaseSync(lite);
      db.exec(`PRAGMA encoding = '${encoding}'; CREATE TABLE t (v TEXT)`);
      db.prepare("INSERT INTO t VALUES (?)").run("a\ufffd\u{1f600}");
      db.close();
      const seen = join(folder, "seen16.jsonl");
      expect(await sync({ from: lite, object: "t", to: seen, table: "t" })).toMatchObject({
        error: null,
        records_rejected: 0,
      });
      expect(readFileSync(seen, "utf8")).toBe('{"v":"a\ufffd\u{1f600}"}\n');
    }
  });

  test("a column that a SQLite table computes itself is refused by name", async () => {
    const db = new DatabaseSync(join(folder, "computing.sqlite"));
    db.exec("CREATE TABLE c (id INTEGER PRIMARY KEY, v INT AS (id * 2))");
    db.close();
    await source.query("CREATE TABLE c AS SELECT 1 AS id, 2 AS v");
    const outcome = await sync({ from, object: "c", to: join(folder, "computing.sqlite"), table: "c" });
    expect(outcome.error?.message).toContain('c computes "v" itself');
  });

  test("SQLite makes up no number for a primary key that is null", async () => {
    const db = new DatabaseSync(join(folder, "rowid.sqlite"));
    db.exec("CREATE TABLE r (id INTEGER PRIMARY KEY, v TEXT)");
    await source.query("CREATE TABLE r AS SELECT NULL::int AS id, 'x' AS v UNION ALL SELECT 7, 'y'");
    const outcome = await sync({ from, object: "r", to: join(folder, "rowid.sqlite"), table: "r" });
    expect(outcome.rejects.map(({ reason }) => reason)).toEqual(["the primary key is null"]);
    expect(db.prepare("SELECT id FROM r").all()).toEqual([{ id: 7 }]);
    db.close();
  });

  test("infinities are numbers in a SQLite column of numbers, whatever they come from", async () => {
    const csv = join(folder, "infinities.csv");
    writeFileSync(csv, "r,i,n,t\nInfinity,-Infinity,Infinity,-Infinity\n");
    const [lite, other] = [join(folder, "infinities.sqlite"), join(folder, "infinities2.sqlite")];
    let read = { from: csv, object: "infinities" };
    for (const to of [lite, other]) {
      const db = new DatabaseSync(to);
      db.exec("CREATE TABLE infinities (r REAL, i INTEGER, n NUMERIC, t TEXT)");
      expect(await sync({ ...read, to, table: "infinities" })).toMatchObject({ error: null, records_synced: 1 });
      expect(db.prepare("SELECT * FROM infinities").all()).toMatchObject([
        { r: Infinity, i: -Infinity, n: Infinity, t: "-Infinity" },
      ]);
      db.close();
      read = { from: lite, object: "infinities" };
    }
  });

  test("a row number beyond 2^53 goes into a SQLite table that numbers its rows by it, and no run after it fails", async () => {
    const lite = join(folder, "snowflakes.sqlite");
    const db = new DatabaseSync(lite);
    db.exec("CREATE TABLE s (id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE d (id INTEGER PRIMARY KEY, v TEXT)");
    db.exec("INSERT INTO s VALUES (1, 'a'), (-9007199254740993, 'b'), (1184563214501924865, 'c')");
    const rows = () => db.prepare("SELECT CAST(id AS TEXT) AS id, v FROM d ORDER BY v").all();
    const pair = { from: lite, object: "s", to: lite, table: "d" };
    const all = [
      { id: "1", v: "a" },
      { id: "-9007199254740993", v: "b" },
      { id: "1184563214501924865", v: "c" },
    ];
    for (const kind of [{}, { mode: "incremental", cursor_field: "id", deletes: "hard" }] as const)
      for (const _ of [1, 2]) {
        expect(await sync(pair, kind)).toMatchObject({ error: null, rejects: [] });
        expect(rows()).toEqual(all);
      }
    db.close();
  });

  test("what SQLite keeps as a REAL in a column of whole numbers, being beyond 64 bits, arrives in another SQLite file", async () => {
    const lite = join(folder, "beyond.sqlite");
    const db = new DatabaseSync(lite);
    db.exec("CREATE TABLE b (id INTEGER PRIMARY KEY, n INT); CREATE TABLE c (id INTEGER PRIMARY KEY, n INT)");
    db.exec("INSERT INTO b VALUES (1, 9223372036854775807), (2, 9223372036854775808), (3, -1e30), (4, 7)");
    const outcome = await sync({ from: lite, object: "b", to: lite, table: "c" });
    expect(outcome).toMatchObject({ error: null, records_synced: 4, rejects: [] });
    const of = (table: string) => db.prepare(`SELECT CAST(n AS TEXT) n, typeof(n) t FROM ${table} ORDER BY id`).all();
    expect(of("c")).toEqual(of("b"));
    db.close();
  });

  test("members named as what every object has are values or null, also under a mapping; half a character is no name", async () => {
    const path = join(folder, "names.jsonl");
    writeFileSync(path, '{"constructor":"x","a":1}\n{"a":2}\n{"__proto__":"y","toString":"z","a":3}\n');
    expect(await sync({ from: path, object: "x", to, table: "named" }, { mapping: { a: "b" } })).toMatchObject({
      error: null,
      records_rejected: 0,
    });
    expect(await target.lines("named", 'b, "constructor" c, "__proto__" p, "toString" t')).toEqual([
      "(1,x,,)",
      "(2,,,)",
      "(3,,y,z)",
    ]);
    writeFileSync(path, '{"\\ud800":1}\n');
    expect((await sync({ from: path, object: "x", to, table: "half" })).error?.code).toBe("validation_failed");
  });

  test("a SQLite table whose key is a number, or has no index, is merged without comparing each row with each", async () => {
    const [from, to] = [join(folder, "many.sqlite"), join(folder, "merged.sqlite")];
    const many = new DatabaseSync(from);
    many.exec(`CREATE TABLE t (id INT8 PRIMARY KEY, c INT8);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) INSERT INTO t SELECT i, 1 FROM n`);
    const merged = new DatabaseSync(to);
    merged.exec("CREATE TABLE plain (id INT8, c INT8)");
    const run = async (table: string) => {
      const { error, proof } = await sync(
        { from, object: "t", to, table },
        { mode: "incremental", cursor_field: "c", deletes: "hard" },
      );
      expect(error).toBeNull();
      return proof.destination_count;
    };
    expect([await run("plain"), await run("keyed")]).toEqual([12_000, 12_000]);
    many.exec("DELETE FROM t WHERE id = 1; UPDATE t SET c = 2");
    expect([await run("plain"), await run("keyed")]).toEqual([11_999, 11_999]);
    expect(merged.prepare("SELECT name FROM sqlite_schema WHERE name = '_magic_key'").all()).toEqual([]);
    many.close();
    merged.close();
  }, 8000);

  test("a member of JSON Lines that is null in every record of a run has changed no type", async () => {
    const [file, lite] = [join(folder, "blank.jsonl"), join(folder, "blank.sqlite")];
    for (const [table, values] of [
      ["numbers", ["7", "null", "8"]],
      ["nothing", ["null", "7", "null"]],
    ] as const)
      for (const value of values) {
        writeFileSync(file, `{"id":1,"v":${value}}\n`);
        expect((await sync({ from: file, object: "blank", to: lite, table })).error, `${table} ${value}`).toBeNull();
      }
    writeFileSync(file, '{"id":1,"v":"x"}\n');
    const { error } = await sync({ from: file, object: "blank", to: lite, table: "numbers" });
    expect(error?.code).toBe("schema_drift");
  });

  test("JSON is read however deep it is nested, and its record is found again", async () => {
    const deep = `${"[".repeat(20_000)}1.50${"]".repeat(20_000)}`;
    const [from, to] = [join(folder, "deep.jsonl"), join(folder, "deep-copy.jsonl")];
    const more = { mode: "incremental", cursor_field: "v", primary_key: ["id"] } as const;
    for (const v of [1, 2]) {
      writeFileSync(from, `{"id":1,"v":${v},"j":${deep}}\n${deep}\n`);
      const outcome = await sync({ from, object: "deep", to, table: "deep" }, more);
      expect(outcome).toMatchObject({ records_synced: 1, rejects: [{ reason: "the line holds no JSON object" }] });
      expect(readFileSync(to, "utf8")).toBe(`{"id":1,"v":${v},"j":${deep}}\n`);
    }
  });

  test("a first file of JSON Lines without a line is a run of no records, and the next one brings what has come", async () => {
    const file = join(folder, "none.jsonl");
    for (const to of [join(folder, "none.csv"), join(folder, "none.sqlite"), pair.to])
      for (const ask of [
        {},
        { mode: "incremental", cursor_field: "id", primary_key: ["id"], columns: ["id"] },
      ] as const) {
        const counts: (number | null)[] = [];
        for (const lines of ["", '{"id":1}\n']) {
          writeFileSync(file, lines);
          const outcome = await sync({ from: file, object: "none", to, table: "none" }, ask);
          expect(outcome.error, to).toBeNull();
          counts.push(outcome.proof.destination_count);
        }
        expect(counts).toEqual([0, 1]);
        if (to === pair.to) await pair.target.query("DROP TABLE none");
        else rmSync(to);
      }
  });

  test("a first file without a line has no key by which deletions could be followed, and says so", async () => {
    const [file, to] = [join(folder, "keyless.jsonl"), join(folder, "keyless.sqlite")];
    new DatabaseSync(to).exec("CREATE TABLE t (id)");
    writeFileSync(file, "");
    const ask = { mode: "incremental", cursor_field: "id", primary_key: ["id"], deletes: "hard" } as const;
    const { error } = await sync({ from: file, object: "lines", to, table: "t" }, ask);
    expect(error?.message).toContain("lines has no column yet");
  });

  test("who reads a SQLite file while a run commits is waited for", async () => {
    const [file, lite] = [join(folder, "read.jsonl"), join(folder, "read.sqlite")];
    const run = () => sync({ from: file, object: "read", to: lite, table: "t" });
    writeFileSync(file, '{"id":1}\n');
    expect((await run()).error).toBeNull();
    const reader = new DatabaseSync(lite);
    reader.exec("BEGIN; SELECT * FROM t");
    const outcome = run();
    await new Promise((resolve) => setTimeout(resolve, 150));
    reader.close();
    expect(await outcome).toMatchObject({ error: null, status: "completed" });
  });

  test("a SQLite file that its writer keeps for itself is waited for, at both ends, and is no failed connection", async () => {
    const [file, lite, copy] = ["kept.jsonl", "kept.sqlite", "copy.sqlite"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, '{"id":1}\n');
    const run = () => sync({ from: file, object: "kept", to: lite, table: "t" });
    expect((await run()).error).toBeNull();
    const writer = new DatabaseSync(lite);
    writer.exec("BEGIN EXCLUSIVE");
    const outcomes = [run(), sync({ from: lite, object: "t", to: copy, table: "t" })];
    const source = await openSource({ url: lite, object: "t" });
    await source.check();
    await source.close();
    await new Promise((resolve) => setTimeout(resolve, 150));
    writer.close();
    for (const outcome of await Promise.all(outcomes))
      expect(outcome).toMatchObject({ error: null, records_synced: 1 });
  });

  test("a SQLite file that is taken away or replaced while rows go into it fails the run: nobody would find them", async () => {
    await source.query("CREATE VIEW drips AS SELECT i AS id, pg_sleep(0.05)::text AS t FROM generate_series(1, 10) i");
    const [lite, other] = [join(folder, "away.sqlite"), join(folder, "other.sqlite")];
    const run = () => sync({ from, object: "drips", to: lite, table: "t" });
    const whileWritten = async (happens: () => void) => {
      const outcome = run();
      await vi.waitUntil(() => existsSync(`${lite}-journal`));
      happens();
      expect(await outcome).toMatchObject({ status: "failed", error: { code: "destination_refused" } });
    };
    await whileWritten(() => rmSync(lite));
    expect((await run()).error).toBeNull();
    copyFileSync(lite, other);
    await whileWritten(() => renameSync(other, lite));
    expect(await run()).toMatchObject({ error: null, records_synced: 10 });
  });

  test("a record of a file that cannot be read has not gone", async () => {
    const [file, lite] = [join(folder, "gone.jsonl"), join(folder, "gone.sqlite")];
    const run = async (lines: string) => {
      writeFileSync(file, lines);
      const outcome = await sync(
        { from: file, object: "gone", to: lite, table: "t" },
        { mode: "incremental", cursor_field: "c", primary_key: ["id"], deletes: "hard" },
      );
      return [outcome.error, outcome.proof.destination_count, outcome.warnings.map(({ code }) => code)];
    };
    expect(await run('{"id":1,"c":1}\n{"id":2,"c":1}\n')).toEqual([null, 2, []]);
    expect(await run('{"id":1,"c":1\n')).toMatchObject([{ code: "source_failed" }, null, []]);
    expect(await run('{"id":1,"c":1\n{"id":3,"c":2}\n')).toEqual([null, 3, ["deletions_not_followed"]]);
    expect(await run('{"id":1,"c":1}\n{"id":3,"c":2}\n')).toEqual([null, 2, []]);
  });

  test("many bad rows cost the server no lock each, and as many without a key as anybody likes are counted", async () => {
    const file = join(folder, "bad.csv");
    writeFileSync(file, `n\n${"x\n".repeat(200)}1\nx\n2\n`);
    await target.query(`CREATE FUNCTION held() RETURNS bigint VOLATILE LANGUAGE sql AS $$ SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'transactionid' $$;
      CREATE TABLE bad (n int, held bigint DEFAULT held())`);
    expect(await sync({ from: file, object: "bad", to, table: "bad" })).toMatchObject({ records_rejected: 201 });
    const [row] = await target.query("SELECT held FROM bad WHERE n = 2");
    expect(Number(row?.["held"])).toBeLessThan(10);
    await source.query(
      "CREATE TABLE unkeyed AS SELECT CASE WHEN i = 1 THEN 1 END AS id FROM generate_series(1, 130000) i",
    );
    const { error, records_rejected, rejects } = await sync(
      { from, object: "unkeyed", to, table: "unkeyed" },
      { primary_key: ["id"] },
    );
    expect([error, records_rejected, rejects.length]).toEqual([null, 129_999, 100]);
  });

  test("bytes that a file writes as text are bytes again in a column of bytes", async () => {
    const to = join(folder, "bytes.sqlite");
    const db = new DatabaseSync(to);
    db.exec("CREATE TABLE t (id TEXT, raw BLOB, plain TEXT)");
    for (const [from, text] of [
      ["bytes.csv", "id,raw,plain\n1,\\x00fF,\\x00\n2,\\x,\n3,\\x0,\n"],
      [
        "bytes.jsonl",
        '{"id":"1","raw":"\\\\x00fF","plain":"\\\\x00"}\n{"id":"2","raw":"\\\\x"}\n{"id":"3","raw":"\\\\x0"}\n',
      ],
    ] as const) {
      writeFileSync(join(folder, from), text);
      const outcome = await sync({ from: join(folder, from), object: "bytes", to, table: "t" });
      expect(outcome.error, from).toBeNull();
      expect(db.prepare("SELECT hex(raw) AS raw, plain FROM t ORDER BY id").all(), from).toEqual([
        { raw: "00FF", plain: "\\x00" },
        { raw: "", plain: null },
        { raw: "5C7830", plain: null },
      ]);
    }
    db.close();
  });

  test("a record whose key takes another form on its way has not gone", async () => {
    const path = join(folder, "forms.sqlite");
    const db = new DatabaseSync(path);
    db.exec("CREATE TABLE raw (id BLOB PRIMARY KEY, v INT); CREATE TABLE mixed (id BIGINT PRIMARY KEY, v INT)");
    const more = { mode: "incremental", cursor_field: "v", primary_key: ["id"], deletes: "hard" } as const;
    const count = async (name: string, text: string, table: string) => {
      writeFileSync(join(folder, name), text);
      const { proof } = await sync({ from: join(folder, name), object: "x", to: path, table }, more);
      return proof.destination_count;
    };
    expect(await count("forms.csv", "id,v\n\\x00ff,1\n\\x01,2\n", "raw")).toBe(2);
    expect(await count("forms.jsonl", '{"id":5,"v":1}\n{"id":"7","v":2}\n', "mixed")).toBe(2);
    expect(await count("forms.jsonl", '{"id":"7","v":2}\n{"id":8,"v":3}\n', "mixed")).toBe(2);
    db.close();
  });

  test("what a file calls a type is no statement of ours", async () => {
    await target.query("CREATE TABLE bystander (id int)");
    const named = "text); DROP TABLE bystander; CREATE TABLE intruder (a text";
    const sqlite = join(folder, "named.sqlite");
    const db = new DatabaseSync(sqlite);
    db.exec(`CREATE TABLE t (v "TEXT ${named}"); INSERT INTO t VALUES ('x')`);
    db.close();
    const parquet = join(folder, "named.parquet");
    const columnData = [{ name: "v", data: ["x"], type: "STRING" as const }];
    const told = (value: string) => ({ columnData, kvMetadata: [{ key: "magic.columns", value }] });
    writeFileSync(parquet, Buffer.from(parquetWriteBuffer(told(JSON.stringify([{ name: "v", native: named }])))));
    const other = join(folder, "other.parquet");
    writeFileSync(other, Buffer.from(parquetWriteBuffer(told("not ours"))));
    for (const from of [sqlite, parquet, other]) {
      expect((await sync({ from, object: "t", to, table: "called" })).error).toBeNull();
      expect(await target.lines("called")).toEqual(["(x)"]);
    }
    expect(await target.query("SELECT to_regclass('bystander') AS there, to_regclass('intruder') AS made")).toEqual([
      { there: "bystander", made: null },
    ]);
  });

  test("objects in a JSON array keep their numbers in an array there", async () => {
    await target.query("CREATE TABLE tags (tags jsonb[])");
    const path = join(folder, "tags.jsonl");
    writeFileSync(path, '{"tags":[{"n":1.10},["x",{"m":12345678901234567890}]]}\n{"tags":[{"n":[2]}]}\n');
    expect(await sync({ from: path, object: "x", to, table: "tags" })).toMatchObject({ records_rejected: 1 });
    expect(await target.query("SELECT tags[1]::text AS tag FROM tags")).toEqual([{ tag: '{"n": [2]}' }]);
  });

  test("a quote within a column's name is one, and hides no record", async () => {
    const path = join(folder, "quoted.csv");
    writeFileSync(path, '\ufeff"i""d",5" disk,"a\n"b\n1,2,3\n');
    expect(await sync({ from: path, object: "x", to, table: "quoted" })).toMatchObject({
      error: null,
      records_read: 1,
    });
    expect(await target.query("SELECT * FROM quoted")).toEqual([{ 'i"d': "1", '5" disk': "2", '"a\n"b': "3" }]);
    writeFileSync(path, 'w,x;"\n1,2\n');
    expect(await sync({ from: path, object: "x", to, table: "other_mark" })).toMatchObject({ records_read: 1 });
    writeFileSync(path, 'id,"name\n1,2\n');
    expect(await sync({ from: path, object: "x", to, table: "quoted" })).toMatchObject({
      error: { code: "source_failed" },
    });
  });

  test("a file that is replaced keeps its permissions, and a link to it stays one", async () => {
    await source.query("CREATE TABLE kept AS SELECT 1 AS id");
    const [path, link] = [join(folder, "kept.csv"), join(folder, "link.csv")];
    writeFileSync(path, "id\n0\n", { mode: 0o600 });
    symlinkSync(path, link);
    expect((await sync({ from, object: "kept", to: link, table: "kept" })).error).toBeNull();
    expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual(['"id"\n1\n', 0o600]);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });

  test("a .tsv file has tabs, read and written", async () => {
    const path = join(folder, "tabs.tsv");
    writeFileSync(path, "last, first\tid\nx, y\t1\n");
    expect((await sync({ from: path, object: "x", to, table: "tabs" })).error).toBeNull();
    expect(await target.query("SELECT * FROM tabs")).toEqual([{ "last, first": "x, y", id: "1" }]);
    writeFileSync(path, "name\na,b\n");
    expect(await sync({ from: path, object: "x", to, table: "one_tab" })).toMatchObject({ records_rejected: 0 });
    await source.query("CREATE TABLE tsv (a text, b text); INSERT INTO tsv VALUES (E'x\\ty', 'z,w'), ('', NULL)");
    expect((await sync({ from, object: "tsv", to: path, table: "tsv" })).error).toBeNull();
    expect(readFileSync(path, "utf8")).toBe('"a"\t"b"\n"x\ty"\tz,w\n""\t\n');
  });

  test("a commit waits for the server's log where the database has turned that off", async () => {
    await target.query("CREATE TABLE waits (id int, how text DEFAULT current_setting('synchronous_commit'))");
    await source.query("CREATE TABLE waits AS SELECT 1 AS id");
    await target.query("ALTER DATABASE test_2 SET synchronous_commit = off");
    expect(
      (await sync({ from, object: "waits", to, table: "waits" }, { mode: "incremental", cursor_field: "id" })).error,
    ).toBeNull();
    await target.query("ALTER DATABASE test_2 RESET synchronous_commit");
    expect(await target.lines("waits")).toEqual(["(1,on)"]);
  });

  test("a Parquet file's older records stay where the source's column has become narrower", async () => {
    await source.query("CREATE TABLE narrow (id int PRIMARY KEY, n bigint); INSERT INTO narrow VALUES (1, 5000000000)");
    const ends = { from, object: "narrow", to: join(folder, "narrow.parquet"), table: "narrow" };
    const more = { mode: "incremental", cursor_field: "id" } as const;
    expect(await sync(ends, more)).toMatchObject({ error: null });
    await source.query("DELETE FROM narrow; ALTER TABLE narrow ALTER n TYPE int; INSERT INTO narrow VALUES (2, 2)");
    expect(await sync(ends, more)).toMatchObject({ error: null, records_synced: 1 });
    expect(await sync({ ...ends, from: ends.to, to })).toMatchObject({ error: null, records_synced: 2 });
    expect(await target.lines("narrow")).toEqual(["(1,5000000000)", "(2,2)"]);
  });

  test("a SQLite file that is damaged in the middle is the source's failure", async () => {
    const lite = join(folder, "damaged.sqlite");
    const db = new DatabaseSync(lite);
    db.exec(
      "CREATE TABLE x (id INTEGER PRIMARY KEY, c INT, t TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO x SELECT i, i, hex(zeroblob(100)) FROM n",
    );
    db.close();
    const ends = { from: lite, object: "x", to, table: "damaged" };
    expect((await sync(ends)).error).toBeNull();
    writeFileSync(lite, readFileSync(lite).fill(0xff, 4096 * 20, 4096 * 22));
    expect(await sync(ends)).toMatchObject({
      error: { code: "source_failed", message: expect.stringContaining(`${lite}: database disk image is malformed`) },
    });
  });

  test("a SQLite view that nobody can read keeps no table from being found", async () => {
    const lite = join(folder, "stale.sqlite");
    const db = new DatabaseSync(lite);
    db.exec("CREATE TABLE a (id INT); CREATE TABLE b (id INT); CREATE VIEW v AS SELECT * FROM b; DROP TABLE b");
    db.close();
    const opened = await openSource({ url: lite, object: "x" }, []);
    expect((await opened.discover()).map(({ name }) => name)).toEqual(["a"]);
    await opened.close();
  });

  test("each of many tables is described with its own columns and key", async () => {
    await source.query(
      "DO $$ BEGIN FOR i IN 1..50 LOOP EXECUTE format('CREATE TABLE many_%s (b int, a text, PRIMARY KEY (a, b))', i); END LOOP; END $$",
    );
    const opened = await openSource({ url: from, object: "x" }, []);
    const objects = await opened.discover();
    await opened.close();
    const many = objects.filter(({ name }) => name.startsWith("public.many_"));
    expect(many).toHaveLength(50);
    expect(many[49]).toMatchObject({
      primary_key: ["a", "b"],
      cursor_candidates: ["b"],
      schema: { required: ["b", "a"] },
    });
  });
});
