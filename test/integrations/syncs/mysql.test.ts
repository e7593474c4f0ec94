// MySQL (MariaDB here) as a source and as a destination.
import { readdirSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import mysql from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectMysql, type MysqlLink } from "#daemon/integrations/connectors/mysql/connect.ts";
import { mysqlError } from "#daemon/integrations/connectors/mysql/errors.ts";
import { insertRows } from "#daemon/integrations/connectors/mysql/write-rows.ts";
import { openDestination } from "#daemon/integrations/connectors/open.ts";
import type { WritePlan } from "#daemon/integrations/engine/destination.ts";
import { runSync } from "#daemon/integrations/engine/run.ts";
import { mysqlMissing, startMysql, type TestMysql } from "#test/mysql.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { cuttingProxy, garblingProxy } from "./cuts.ts";
import { connect, specOf, sync } from "./harness.ts";

describe.skipIf(mysqlMissing() || postgresMissing())("mysql", () => {
  let servers: [TestMysql, TestPostgres];
  let my: string;
  let other: string;
  let pg: string;
  let source: mysql.Connection;
  let target: Awaited<ReturnType<typeof connect>>;

  beforeAll(async () => {
    servers = await Promise.all([startMysql(), startPostgres()]);
    [my, other, pg] = [
      await servers[0].createDatabase("src"),
      await servers[0].createDatabase("other"),
      await servers[1].createDatabase(),
    ];
    source = await mysql.createConnection({ uri: my, multipleStatements: true });
    target = await connect(pg);
  });
  afterAll(async () => {
    await Promise.all([source?.end(), target?.end()]);
    await Promise.all(servers?.map((server) => server.stop()) ?? []);
  });

  test("every type at its extremes arrives in PostgreSQL as it was, or is quarantined", async () => {
    await source.query(`SET time_zone = '+00:00', sql_mode = '';
      CREATE TABLE extremes (id bigint PRIMARY KEY, t1 tinyint, u1 tinyint unsigned, b1 bit(1), b64 bit(64), u2 smallint unsigned, i3 mediumint, u4 int unsigned, u8 bigint unsigned, i8 bigint,
        d decimal(65,30), f float, g double, y year, dt datetime(6), ts timestamp(6) NULL, da date, ti time(6), c char(5), v varchar(50), tx longtext, bi varbinary(20), bl longblob, e enum('a','b c'), s set('x','y'), j json);
      INSERT INTO extremes VALUES
        (1, -128, 255, b'1', b'1111111111111111111111111111111111111111111111111111111111111111', 65535, -8388608, 4294967295, 18446744073709551615, -9223372036854775808, 99999999999999999999999999999999999.999999999999999999999999999999,
          16777217, -1.7976931348623157e308, 2155, '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.999999', '9999-12-31', '23:59:59.999999', 'ab', 'tab\\tnl\\nback\\\\slash é 😀', 'x', x'00ff0a', x'00', 'b c', 'x,y', '{"a": 12345678901234567890}'),
        (2, 127, 0, b'0', b'0', 0, 8388607, 0, 0, 9223372036854775807, -0.000000000000000000000000000001, 1.1, 5e-324, 1901, '1000-01-01 00:00:00', '1970-01-01 00:00:01', '1000-01-01', '00:00:00', '', '', '', '', '', 'a', '', '[]'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (4, 1, 1, b'1', b'1', 1, 1, 1, 1, 1, 1, 1, 1, 2000, '0000-00-00 00:00:00', '2000-01-01', '2000-01-01', '00:00:00', '', '', '', '', '', 'a', '', '1'),
        (5, 1, 1, b'1', b'1', 1, 1, 1, 1, 1, 1, 1, 1, 2000, '2000-01-01', '2000-01-01', '2000-01-01', '-838:59:59', '', '', '', '', '', 'a', '', '1')`);
    const outcome = await sync({ from: my, object: "src.extremes", to: pg, table: "extremes" });
    expect(outcome.error).toBeNull();
    expect(outcome.rejects.map(({ key, column }) => [key, column])).toEqual([
      ["4", "dt"],
      ["5", "ti"],
    ]);
    expect(outcome).toMatchObject({ records_read: 5, records_synced: 3, records_rejected: 2 });
    const rows = await target.query("SELECT * FROM extremes ORDER BY id");
    expect(rows[0]).toEqual({
      id: "1",
      t1: "-128",
      u1: "255",
      b1: "t",
      b64: "18446744073709551615",
      u2: "65535",
      i3: "-8388608",
      u4: "4294967295",
      u8: "18446744073709551615",
      i8: "-9223372036854775808",
      d: "99999999999999999999999999999999999.999999999999999999999999999999",
      f: "1.6777216e+07",
      g: "-1.7976931348623157e+308",
      y: "2155",
      dt: "9999-12-31 23:59:59.999999",
      ts: "2038-01-19 03:14:07.999999+00",
      da: "9999-12-31",
      ti: "23:59:59.999999",
      c: "ab",
      v: "tab\tnl\nback\\slash é 😀",
      tx: "x",
      bi: "\\x00ff0a",
      bl: "\\x00",
      e: "b c",
      s: "x,y",
      j: '{"a": 12345678901234567890}',
    });
    expect(rows[1]).toMatchObject({
      d: "-0.000000000000000000000000000001",
      f: "1.1",
      g: "5e-324",
      dt: "1000-01-01 00:00:00",
      ts: "1970-01-01 00:00:01+00",
      bi: "\\x",
      tx: "",
    });
  });

  test("a BIT column that is there gets the number, not its digits' bytes, and YEAR no century; what its neighbours would round is quarantined", async () => {
    await source.query(
      "CREATE TABLE src.bits (id int PRIMARY KEY, b bit(64), n int, y year); INSERT INTO src.bits VALUES (1, 65, 1, 1999), (2, b'11', 2, 0); CREATE TABLE other.bits (id int PRIMARY KEY, b bit(64), n int, y year)",
    );
    // By way of a whole number, which is what a year is elsewhere.
    expect(await sync({ from: my, object: "src.bits", to: pg, table: "bits" })).toMatchObject({
      error: null,
      rejects: [],
    });
    const back = await sync({ from: pg, object: "bits", to: other, table: "other.bits" });
    expect(back).toMatchObject({ error: null, rejects: [] });
    const [rows] = await source.query("SELECT b + 0 AS b, y + 0 AS y FROM other.bits ORDER BY id");
    expect(rows).toEqual([
      { b: 65, y: 1999 },
      { b: 3, y: 0 },
    ]);
  });

  test("rows whose key is a BIT are found again: none is taken for gone, none comes twice", async () => {
    await source.query(
      "CREATE TABLE src.by_bit (k bit(64) PRIMARY KEY, n int); INSERT INTO src.by_bit VALUES (65, 1), (66, 2); CREATE TABLE other.by_bit (k bit(64), n int)",
    );
    const ends = { from: my, object: "src.by_bit", to: other, table: "other.by_bit" };
    const ask = { mode: "incremental", cursor_field: "n", deletes: "hard" } as const;
    expect((await sync(ends, ask)).error).toBeNull();
    await source.query("UPDATE src.by_bit SET n = n + 5");
    expect((await sync(ends, ask)).error).toBeNull();
    const [rows] = await source.query("SELECT k + 0 AS k, n FROM other.by_bit ORDER BY k");
    expect(rows).toEqual([
      { k: 65, n: 6 },
      { k: 66, n: 7 },
    ]);
  });

  test("seconds' fractions that a column there would round away are quarantined, whatever the source", async () => {
    await target.query(
      "CREATE TABLE seconds (id int PRIMARY KEY, at timestamp, t time, d date); INSERT INTO seconds VALUES (1, '2020-01-01 00:00:00.5', NULL, NULL), (2, NULL, '00:00:00.5', NULL), (3, '2020-01-01 00:00:01', '00:00:01', 'infinity'), (4, '2020-01-01 00:00:01', '00:00:01', NULL)",
    );
    await source.query("CREATE TABLE other.seconds (id int PRIMARY KEY, at datetime, t time, d date)");
    const outcome = await sync({ from: pg, object: "seconds", to: other, table: "other.seconds" });
    expect(outcome.error).toBeNull();
    expect(outcome.rejects.map(({ key, column }) => `${key} ${column}`).sort()).toEqual(["1 at", "2 t", "3 d"]);
    expect(outcome.records_synced).toBe(1);
  });

  test("a file's times with offsets and words for booleans go into the columns for them; what names no day is quarantined", async () => {
    const folder = temporaryFolder();
    const rows = [
      "2024-03-31T02:30:00.123456Z,2024-03-31T02:30:00Z,true,F",
      "2024-03-31 00:30:00+0530,2024-03-31,0,1",
      "2024-02-30T00:00:00Z,,,",
      ",2024-03-31T02:30:00+01:00,,",
      ",,maybe,",
    ];
    writeFileSync(join(folder, "told.csv"), ["t,d,b,o", ...rows].join("\n"));
    await source.query("CREATE TABLE told (t timestamp(6) NULL, d datetime, b boolean, o bit(1))");
    const outcome = await sync({ from: join(folder, "told.csv"), object: "told", to: my, table: "told" });
    expect(outcome.rejects.map(({ key, column }) => [key, column]).sort()).toEqual([
      ["row 3", "t"],
      ["row 4", "d"],
      ["row 5", "b"],
    ]);
    const [told] = await source.query("SELECT CONCAT_WS(' ', t, d, b, o + 0) AS said FROM told ORDER BY t");
    expect(told).toEqual([
      { said: "2024-03-30 19:00:00.000000 2024-03-31 00:00:00 0 1" },
      { said: "2024-03-31 02:30:00.123456 2024-03-31 02:30:00 1 0" },
    ]);
  });

  test("what SQLite holds beside a type that it lacks is quarantined in PostgreSQL and MySQL, and stays in SQLite", async () => {
    const folder = temporaryFolder();
    const lite = join(folder, "loose.sqlite");
    const db = new DatabaseSync(lite);
    db.exec(`CREATE TABLE loose (id INTEGER PRIMARY KEY, n "TEXT numeric(10,2)", d "TEXT date", t "TEXT timestamp(3) without time zone", i "TEXT time without time zone");
      INSERT INTO loose VALUES (1, '1.005', NULL, NULL, NULL), (2, NULL, '2024-02-29 10:00:00', NULL, NULL), (3, NULL, NULL, '2024-02-29T10:00:00+02:00', NULL), (4, NULL, NULL, '2024-02-29 10:00:00.0001', NULL),
        (5, NULL, NULL, '1709200000', NULL), (6, NULL, NULL, NULL, '10:00:00.0000001'), (7, '1.01', '2024-02-29', '2024-02-29 10:00:00.123', '10:00:00.000001')`);
    db.close();
    // MySQL's DATETIME(6) keeps what is too fine for timestamp(3), and took the number for a day in 2017.
    const refused = { [pg]: "1n,2d,3t,4t,5t,6i", [my]: "1n,2d,3t,5t,6i", [join(folder, "copy.sqlite")]: "" };
    for (const [to, rejects] of Object.entries(refused))
      for (const _ of ["into a new table", "into that table"]) {
        const outcome = await sync({ from: lite, object: "loose", to, table: "loose" });
        expect(outcome.error).toBeNull();
        const told = outcome.rejects.map(({ key, column }) => `${key}${column}`);
        expect(told.sort().join()).toBe(rejects);
      }
  });

  test("PostgreSQL into MySQL and back is equal, or quarantined and counted", async () => {
    await target.query(`CREATE TABLE out_types (id int PRIMARY KEY, n numeric, d numeric(38,10), t text, b bytea, j jsonb, a text[], u uuid, ok boolean, r real, g double precision, ts timestamptz, tm timestamp, da date, ti time);
      INSERT INTO out_types VALUES (1, 123456789012345678901234567890.123456789012345678901234567890123, -9999999999999999999999999999.9999999999, E'it''s \\\\ 😀', '\\x00ff', '{"n": 12345678901234567890.5}', '{a,NULL,"x y"}', '00000000-0000-0000-0000-00000000000a', true, 3.4e38, 5e-324, '2024-02-29 23:59:59.999999+00', '9999-12-31 23:59:59.999999', '1000-01-01', '23:59:59.999999'),
        (2, 0, 0, '', '', '[]', '{}', NULL, false, 0, 0, NULL, NULL, NULL, NULL), (3, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'infinity', NULL, NULL, NULL), (4, 1, 1, 'a', NULL, NULL, NULL, NULL, NULL, NULL, 'NaN', NULL, NULL, NULL, NULL);
      CREATE TABLE back_types (LIKE out_types)`);
    const out = await sync({ from: pg, object: "out_types", to: other, table: "out_types" });
    expect(out.error).toBeNull();
    expect(out.rejects.map(({ key }) => key)).toEqual(["3", "4"]);
    // Over the table that the first run made.
    for (const mode of ["full_refresh", "incremental"] as const) {
      const again = await sync(
        { from: pg, object: "out_types", to: other, table: "out_types" },
        { mode, cursor_field: "id" },
      );
      expect(again).toMatchObject({ error: null, records_synced: 2, records_rejected: 2 });
    }
    const back = await sync({ from: other, object: "out_types", to: pg, table: "back" });
    expect(back.error).toBeNull();
    const columns =
      "id, n::numeric, d, t, b, j::jsonb, a::text[], u::uuid, ok::int::boolean, r::real, g, ts::timestamp, tm, da, ti";
    expect(await target.lines("back", columns)).toEqual(
      (
        await target.lines(
          "out_types",
          columns.replace("ok::int::boolean", "ok").replace("ts::timestamp", "ts::timestamp"),
        )
      ).filter((line) => /^\((1|2),/.test(line)),
    );
  });

  test("incremental runs upsert, look back for late committers, and keep the state in the same database", async () => {
    await source.query(
      "CREATE TABLE orders (id int PRIMARY KEY, t text, at datetime(6)); INSERT INTO orders VALUES (1, 'a', '2024-01-01 10:00:00.000001'), (2, 'b', '2024-01-01 11:00:00')",
    );
    const server = other.replace(/other$/, "");
    const run = () =>
      sync(
        { from: my, object: "src.orders", to: server, table: "other.orders" },
        { mode: "incremental", cursor_field: "at", deletes: "hard" },
      );
    expect(await run()).toMatchObject({ status: "completed", records_synced: 2 });
    await source.query(
      "UPDATE orders SET t = 'c', at = '2024-01-02' WHERE id = 1; INSERT INTO orders VALUES (3, 'late', '2024-01-01 10:59:00'); DELETE FROM orders WHERE id = 2",
    );
    const second = await run();
    expect(second.error).toBeNull();
    const [rows] = await source.query("SELECT id, t FROM other.orders ORDER BY id");
    expect(rows).toEqual([
      { id: 1, t: "c" },
      { id: 3, t: "late" },
    ]);
    const [state] = await source.query(
      "SELECT JSON_UNQUOTE(JSON_EXTRACT(state, '$.cursor')) AS c FROM other._magic_state WHERE stream = 'src.orders'",
    );
    expect(state).toEqual([{ c: "2024-01-02 00:00:00.000000" }]);
    await source.query("ALTER TABLE orders DROP COLUMN t; ALTER TABLE orders ADD COLUMN t varchar(9) DEFAULT 'anew'");
    expect((await run()).error).toBeNull();
    const [anew] = await source.query("SELECT id, t FROM other.orders ORDER BY id");
    expect(anew).toEqual([
      { id: 1, t: "anew" },
      { id: 3, t: "anew" },
    ]);
  });

  test("a full refresh replaces the rows in one transaction; a failed one leaves the old ones and no table", async () => {
    await source.query("CREATE TABLE small (id int PRIMARY KEY); INSERT INTO small VALUES (1), (2)");
    const run = (table: string) => sync({ from: pg, object: "numbers", to: other, table });
    await target.query("CREATE TABLE numbers AS SELECT i AS id, repeat('x', 100) AS t FROM generate_series(1, 5000) i");
    expect(await run("numbers")).toMatchObject({ status: "completed", proof: { destination_count: 5000 } });
    await target.query("DELETE FROM numbers WHERE id > 100");
    expect(await run("numbers")).toMatchObject({ status: "completed", proof: { destination_count: 100 } });
    const failed = await sync({ from: pg, object: "missing", to: other, table: "never" });
    expect(failed.error?.code).toBe("object_not_found");
    const [tables] = await source.query(
      "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = 'other' AND (table_name LIKE '\\\\_magic%' OR table_name = 'never')",
    );
    expect(tables).toEqual([{ t: "_magic_state" }]);
  });

  test("a failed run takes the table away that it made, but not with what somebody else has written into it", async () => {
    for (const rows of [0, 1]) {
      await target.query(
        `SELECT pg_advisory_lock(${rows}); CREATE VIEW held${rows} AS SELECT 1 AS id, CASE WHEN pg_advisory_xact_lock_shared(${rows}) IS NOT NULL THEN timestamp 'infinity' END AS t`,
      );
      const table = `shared${rows}`;
      const run = sync({ from: pg, object: `held${rows}`, to: other, table }, { on_bad_record: "fail" });
      const there = async () =>
        (await source.query<mysql.RowDataPacket[]>(`SHOW TABLES FROM other LIKE '${table}'`))[0];
      while ((await there()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      if (rows > 0) await source.query(`INSERT INTO other.${table} (id) VALUES (7)`);
      await target.query(`SELECT pg_advisory_unlock(${rows})`);
      expect((await run).error?.code).toBe("bad_record");
      expect(await there()).toHaveLength(rows);
    }
  });

  test("two syncs that replace one table take turns, from its first rows on; a column may be called as what every object has", async () => {
    await source.query("CREATE TABLE turns (id int, `__proto__` text); INSERT INTO turns VALUES (1, 'a'), (2, 'b')");
    await target.query(
      "SELECT pg_advisory_lock(7); CREATE VIEW turns AS SELECT 3 AS id, (pg_advisory_xact_lock_shared(7) IS NOT NULL)::text AS __proto__",
    );
    const there = async () => (await source.query<mysql.RowDataPacket[]>("SHOW TABLES FROM other LIKE 'turns'"))[0];
    const first = sync({ from: pg, object: "turns", to: other, table: "turns" });
    while ((await there()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    const second = sync({ from: my, object: "turns", to: other, table: "turns" });
    await Promise.race([second, new Promise((resolve) => setTimeout(resolve, 150))]);
    await target.query("SELECT pg_advisory_unlock(7)");
    expect((await Promise.all([first, second])).map(({ error }) => error)).toEqual([null, null]);
    const [rows] = await source.query<mysql.RowDataPacket[]>("SELECT id FROM other.turns ORDER BY id");
    expect(rows.map(({ id }) => id)).toEqual([1, 2]);
  });

  test("a rejected value's column is named, whatever quotes the names hold", async () => {
    await source.query("CREATE TABLE other.`k'o` (`id` int, `d.o's` date)");
    await target.query(`CREATE TABLE quoted (id int, "d.o's" date); INSERT INTO quoted VALUES (1, 'infinity')`);
    const { rejects } = await sync({ from: pg, object: "quoted", to: other, table: "k'o" });
    expect(rejects).toMatchObject([{ key: "row 1", column: "d.o's" }]);
  });

  test("columns that MySQL or SQLite does not tell apart, and names that a server cannot hold, are refused by name", async () => {
    await target.query(
      'CREATE TABLE alike ("Ab" int, "aB" int); CREATE TABLE lower (id int); CREATE TABLE emoji ("😀" int)',
    );
    await source.query("CREATE TABLE other.lower (ID int)");
    const lite = join(temporaryFolder(), "alike.sqlite");
    const file = new DatabaseSync(lite);
    file.exec("CREATE TABLE lower (ID int)");
    file.close();
    const refused = async (object: string, to: string) => (await sync({ from: pg, object, to, table: object })).error;
    for (const [to, database] of [
      [other, "MySQL"],
      [lite, "SQLite"],
    ] as const) {
      expect(await refused("alike", to)).toMatchObject({
        code: "validation_failed",
        message: expect.stringContaining(`${database} does not tell the columns "Ab" and "aB" apart`),
      });
      expect(await refused("lower", to)).toMatchObject({
        code: "validation_failed",
        message: expect.stringContaining(`has a column "ID", which ${database} does not tell from "id"`),
      });
    }
    expect(await refused("emoji", other)).toMatchObject({
      code: "validation_failed",
      message: expect.stringContaining('"😀"'),
    });
    const long = "n".repeat(65);
    const names = { [other]: [long, "", "ends in a blank ", "nul\0"], [pg]: [long, "", "nul\0", "ctid"] };
    const names_jsonl = join(temporaryFolder(), "names.jsonl");
    for (const [to, all] of Object.entries(names))
      for (const name of all) {
        writeFileSync(names_jsonl, `${JSON.stringify({ [name]: 1 })}\n`);
        expect((await sync({ from: names_jsonl, object: "names", to, table: "names" })).error).toMatchObject({
          code: "validation_failed",
          message: expect.stringMatching(/another|shorter/),
        });
      }
  });

  test("a record whose key the table cannot hold does not keep another one from being removed", async () => {
    await source.query(
      "CREATE TABLE wide (id varchar(9) PRIMARY KEY, v int); INSERT INTO wide VALUES ('abc', 1), ('abcdef', 2), ('x', 3)",
    );
    await source.query("CREATE TABLE other.wide (id varchar(3) PRIMARY KEY, v int)");
    const ends = { from: my, object: "src.wide", to: other, table: "wide" };
    const more = { mode: "incremental", cursor_field: "v", deletes: "hard" } as const;
    expect(await sync(ends, more)).toMatchObject({ error: null, rejects: [{ key: "abcdef" }] });
    await source.query("DELETE FROM wide WHERE v = 1");
    expect((await sync(ends, more)).error).toBeNull();
    expect((await source.query("SELECT id FROM other.wide"))[0]).toEqual([{ id: "x" }]);
  });

  test("a zero date as a key has not gone, nor has what a row refers to by one", async () => {
    await source.query(
      "SET sql_mode = ''; CREATE TABLE zero (day date PRIMARY KEY, v int); INSERT INTO zero VALUES ('0000-00-00', 1), ('2020-01-01', 2)",
    );
    await source.query("CREATE TABLE other.zero (day date PRIMARY KEY, v int)");
    await source.query(
      "CREATE TABLE other.zeros_child (id int, day date, FOREIGN KEY (day) REFERENCES other.zero (day) ON DELETE CASCADE)",
    );
    const ends = { from: my, object: "src.zero", to: other, table: "zero" };
    const more = { mode: "incremental", cursor_field: "v" } as const;
    for (const deletes of ["hard", "soft"] as const)
      expect(await sync(ends, { ...more, deletes })).toMatchObject({ error: null, proof: { destination_count: 2 } });
    await source.query("INSERT INTO other.zeros_child VALUES (1, '0000-00-00')");
    expect((await sync(ends)).error).toBeNull();
    expect((await source.query("SELECT id FROM other.zeros_child"))[0]).toEqual([{ id: 1 }]);
    const file = { ...ends, to: join(temporaryFolder(), "zero.jsonl") };
    await source.query("ALTER TABLE zero MODIFY day datetime(6)");
    for (const v of [3, 4]) {
      await source.query(`UPDATE zero SET v = ${v}`);
      expect(await sync(file, more)).toMatchObject({ error: null, proof: { destination_count: 2 } });
    }
  });

  test("a key that comes again while deletions are followed is not tried alone", async () => {
    const folder = temporaryFolder();
    const from = join(folder, "again.csv");
    writeFileSync(from, "id,v\na,1\nb,2\na,3\nb,4\n");
    const undone = async () => (await source.query("SHOW GLOBAL STATUS LIKE 'Com_rollback_to_savepoint'"))[0];
    const before = await undone();
    const more = { mode: "incremental", cursor_field: "v", primary_key: ["id"], deletes: "hard" } as const;
    expect(await sync({ from, object: "x", to: other, table: "repeated" }, more)).toMatchObject({
      error: null,
      proof: { destination_count: 2 },
    });
    expect(await undone()).toEqual(before);
  });

  test("a question mark in a name or a value is one", async () => {
    await source.query("CREATE TABLE `who?` (`id?` varchar(9), n int); INSERT INTO `who?` VALUES ('a?', 1), ('b', 2)");
    await source.query("CREATE TABLE other.`whose?` (`id?` varchar(9), n int, kept int)");
    const ends = { from: my, object: "who?", to: other, table: "whose?" };
    const more = { cursor_field: "n", primary_key: ["id?"] };
    expect(await sync(ends, { ...more, mode: "incremental" })).toMatchObject({ error: null, records_synced: 2 });
    await source.query("UPDATE `who?` SET n = 3 WHERE n = 1");
    expect(await sync(ends, { ...more, mode: "incremental" })).toMatchObject({ error: null, changed: true });
    const [rows] = await source.query("SELECT n FROM other.`whose?` ORDER BY n");
    expect(rows).toEqual([{ n: 2 }, { n: 3 }]);
    const [states] = await source.query("SELECT stream FROM other._magic_state WHERE stream LIKE '%?'");
    expect(states).toEqual([{ stream: "who?" }]);
    const appended = { ...ends, table: "appended" };
    for (const read of [2, 0])
      expect(await sync(appended, { mode: "incremental", cursor_field: "n" })).toMatchObject({ records_read: read });
    expect((await sync(ends, { ...more, deletes: "soft" })).error).toBeNull();
  });

  test("of a row that another unique column refuses, or whose key only a collation takes for another, no other row is changed", async () => {
    await source.query(
      "CREATE TABLE other.people (id varchar(20) PRIMARY KEY, email varchar(50) UNIQUE, n int) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; INSERT INTO other.people VALUES ('a', 'a@x', 1), ('z', 'taken', 1)",
    );
    await target.query(
      "CREATE TABLE people (id text PRIMARY KEY, email text, n int); INSERT INTO people VALUES ('a', 'a@x', 2), ('b', 'b@x', 2), ('A', 'c@x', 2), ('d', 'taken', 2), ('e', 'e@x', 2)",
    );
    const run = await sync(
      { from: pg, object: "people", to: other, table: "people" },
      { mode: "incremental", cursor_field: "n" },
    );
    expect(run.error).toBeNull();
    expect(run.rejects.map(({ key }) => key)).toEqual(["A", "d"]);
    const [rows] = await source.query("SELECT id, email, n FROM other.people ORDER BY id");
    expect(rows).toEqual([
      { id: "a", email: "a@x", n: 2 },
      { id: "b", email: "b@x", n: 2 },
      { id: "e", email: "e@x", n: 2 },
      { id: "z", email: "taken", n: 1 },
    ]);
    await target.query("UPDATE people SET email = 'taken' WHERE id = 'e'");
    const refreshed = await sync({ from: pg, object: "people", to: other, table: "people" });
    expect(refreshed.rejects.map(({ key, column }) => [key, column])).toContainEqual(["e", "email"]);
    await target.query(
      "CREATE TABLE padded (id text PRIMARY KEY); INSERT INTO padded VALUES ('a'), ('a '), ('A'), ('ä')",
    );
    const padded = await sync(
      { from: pg, object: "padded", to: other, table: "padded" },
      { mode: "incremental", cursor_field: "id" },
    );
    expect(padded).toMatchObject({ status: "completed", records_synced: 4, proof: { destination_count: 4 } });
  });

  test("a column of decimals stays one where the source's numbers have no bounds: what does not fit is quarantined", async () => {
    await target.query(
      "CREATE TABLE unbounded (id int PRIMARY KEY, v numeric); INSERT INTO unbounded VALUES (1, 'NaN'), (2, 1.5), (3, 1.005), (4, 1e9)",
    );
    await source.query("CREATE TABLE other.unbounded (id int PRIMARY KEY, v decimal(10,2))");
    const outcome = await sync({ from: pg, object: "unbounded", to: other, table: "unbounded" });
    expect(outcome).toMatchObject({ status: "completed", records_rejected: 3, error: null });
    const [rows] = await source.query("SELECT id, v FROM other.unbounded");
    expect(rows).toEqual([{ id: 2, v: "1.50" }]);
  });

  test("a record for which the table has no partition costs that record alone", async () => {
    await target.query(
      "CREATE TABLE parted (id int PRIMARY KEY, v int); INSERT INTO parted VALUES (1, 1), (9, 2), (2, 3)",
    );
    await source.query(
      "CREATE TABLE other.parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id) (PARTITION few VALUES LESS THAN (5))",
    );
    for (const mode of ["full_refresh", "incremental"] as const) {
      const more = { mode, cursor_field: mode === "incremental" ? "v" : null };
      const outcome = await sync({ from: pg, object: "parted", to: other, table: "parted" }, more);
      expect(outcome).toMatchObject({ status: "completed", rejects: [{ key: "9" }], records_rejected: 1 });
      const [rows] = await source.query("SELECT id FROM other.parted ORDER BY id");
      expect(rows).toEqual([{ id: 1 }, { id: 2 }]);
    }
  });

  test("a record that a trigger refuses costs that record alone; where it keeps rows that are to go, the run is refused", async () => {
    await target.query(
      "CREATE TABLE signalled (id int PRIMARY KEY, v int); INSERT INTO signalled SELECT i, i FROM generate_series(1, 50) i",
    );
    await source.query(`CREATE TABLE other.signalled (id int PRIMARY KEY, v int);
      CREATE TRIGGER other.t BEFORE INSERT ON other.signalled FOR EACH ROW IF NEW.id % 20 = 7 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not with us'; END IF`);
    const ends = { from: pg, object: "signalled", to: other, table: "signalled" };
    const incremental = { mode: "incremental", cursor_field: "v" } as const;
    for (const more of [incremental, {}])
      expect(await sync(ends, more)).toMatchObject({
        error: null,
        records_synced: 47,
        records_rejected: 3,
        rejects: Array(3).fill({ reason: "not with us" }),
      });
    await source.query(
      "CREATE TRIGGER other.kept BEFORE DELETE ON other.signalled FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not with us'",
    );
    await target.query("DELETE FROM signalled WHERE id > 40");
    const kept = { code: "destination_refused", message: "A trigger keeps rows that are to go: not with us" };
    for (const more of [{ ...incremental, deletes: "hard" }, {}] as const)
      expect((await sync(ends, more)).error).toEqual(kept);
  });

  test("a full refresh of a table that somebody has locked says that it waits for the lock", async () => {
    await target.query("CREATE TABLE locked (id int PRIMARY KEY)");
    await source.query("CREATE TABLE other.locked (id int PRIMARY KEY); LOCK TABLES other.locked WRITE");
    const ends = { from: pg, object: "locked", to: other, table: "locked" };
    const { error } = await sync(ends, { stall_timeout_s: 1 }).finally(() => source.query("UNLOCK TABLES"));
    expect(error).toMatchObject({ code: "run_stalled", message: expect.stringContaining("the lock of locked") });
  });

  test("a FLOAT takes the greatest of them and its negative", async () => {
    await target.query(
      "CREATE TABLE far (id int PRIMARY KEY, f real); INSERT INTO far VALUES (1, '3.4028235e38'), (2, '-3.4028235e38')",
    );
    await source.query("CREATE TABLE other.far (id int PRIMARY KEY, f FLOAT)");
    const outcome = await sync({ from: pg, object: "far", to: other, table: "far" });
    expect(outcome).toMatchObject({ error: null, records_rejected: 0 });
    const [rows] = await source.query("SELECT f + 0e0 AS f FROM other.far ORDER BY id");
    expect(rows).toEqual([{ f: 3.4028234663852886e38 }, { f: -3.4028234663852886e38 }]);
  });

  test("geometry arrives in a geometry column with its reference system, directly and by way of a file; what is none is quarantined", async () => {
    await source.query(`CREATE TABLE places (id int PRIMARY KEY, g geometry);
      INSERT INTO places VALUES (1, ST_GeomFromText('POINT(1 -2.5)')), (2, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))', 4326)), (3, NULL);
      CREATE TABLE other.places (id int PRIMARY KEY, g geometry); CREATE TABLE other.again (id int PRIMARY KEY, g geometry);
      CREATE TABLE raw (id int PRIMARY KEY, g blob); INSERT INTO raw VALUES (1, x'00'), (2, x''), (3, ST_AsBinary(ST_GeomFromText('POINT(1 1)')))`);
    const ends = { from: my, object: "src.places", to: other, table: "places" };
    expect(await sync(ends)).toMatchObject({ status: "completed", records_rejected: 0 });
    expect(await sync({ ...ends, to: pg })).toMatchObject({ status: "completed", records_rejected: 0 });
    expect(await sync({ from: pg, object: "places", to: other, table: "again" })).toMatchObject({
      records_rejected: 0,
    });
    const shown = async (table: string) =>
      (await source.query(`SELECT id, ST_AsText(g) AS t, ST_SRID(g) AS s FROM ${table} ORDER BY id`))[0];
    expect(await shown("other.places")).toEqual(await shown("src.places"));
    expect(await shown("other.again")).toEqual(await shown("src.places"));
    expect(await sync({ ...ends, object: "src.raw" })).toMatchObject({ records_synced: 1, records_rejected: 2 });
  });

  test("a widened column keeps what else was said of it; a FLOAT is a key, and an enum's texts are a cursor", async () => {
    await source.query(`CREATE TABLE other.wider (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, a int NOT NULL DEFAULT 7 COMMENT 'a, b\\\\c\\n');
      CREATE TABLE wider (id bigint PRIMARY KEY, a bigint); INSERT INTO wider VALUES (5000000000, 6000000000);
      CREATE TABLE floats (k float, c enum('z', 'a'), v int); CREATE TABLE other.floats (k float, c varchar(9), v int);
      INSERT INTO floats VALUES (0.1, 'z', 2), (0.1, 'a', 1), (16777216, 'a', 1)`);
    const run = (table: string, more: object) =>
      sync({ from: my, object: `src.${table}`, to: other, table }, { mode: "incremental", ...more });
    expect((await run("wider", { cursor_field: "id" })).error).toBeNull();
    const [[made]] = (await source.query("SHOW CREATE TABLE other.wider")) as unknown as [Record<string, string>[]];
    expect(made?.["Create Table"]).toMatch(
      /`id` bigint.* NOT NULL AUTO_INCREMENT,\n.*`a` bigint.* NOT NULL DEFAULT '?7'? COMMENT 'a, b\\\\c\\n'/,
    );
    for (let runs = 0; runs < 2; runs++) {
      expect((await run("floats", { cursor_field: "c", primary_key: ["k"] })).error).toBeNull();
      const [rows] = await source.query("SELECT v FROM other.floats ORDER BY k");
      expect(rows).toEqual([{ v: 2 }, { v: 1 }]);
    }
  });

  test("a full refresh by another key, or by none, needs no value for the former one's column that is read no longer", async () => {
    await source.query(`CREATE TABLE freed (id varchar(9), k int, v int); INSERT INTO freed VALUES ('a', 1, 1), ('b', 2, 2);
      CREATE TABLE other.freed (id varchar(9) CHARACTER SET ascii NOT NULL COMMENT 'it''s NOT NULL', k int, v int, PRIMARY KEY (id))`);
    const run = (more: object) => sync({ from: my, object: "src.freed", to: other, table: "freed" }, more);
    const shown = async () => {
      const [[made]] = (await source.query("SHOW CREATE TABLE other.freed")) as unknown as [Record<string, string>[]];
      return made?.["Create Table"];
    };
    expect((await run({ primary_key: ["id"] })).error).toBeNull();
    expect(await run({ primary_key: ["k"], columns: ["k", "v"] })).toMatchObject({ records_synced: 2, error: null });
    expect(await shown()).toMatch(
      /`id` varchar\(9\) .*ascii.* DEFAULT NULL COMMENT 'it''s NOT NULL',(.|\n)*PRIMARY KEY \(`k`\)/,
    );
    expect(await run({ columns: ["v"] })).toMatchObject({ records_synced: 2, error: null });
    expect((await source.query("SELECT id, k, v FROM other.freed ORDER BY v"))[0]).toEqual([
      { id: null, k: null, v: 1 },
      { id: null, k: null, v: 2 },
    ]);
  });

  test("a full refresh of a source that has lost its key takes the sync's own key from the table: no row is one too many", async () => {
    await target.query("CREATE TABLE lost_key (id int PRIMARY KEY, v int); INSERT INTO lost_key VALUES (1, 1), (2, 2)");
    const ends = { from: pg, object: "lost_key", to: other, table: "lost_key" };
    expect((await sync(ends)).error).toBeNull();
    await target.query("ALTER TABLE lost_key DROP CONSTRAINT lost_key_pkey; INSERT INTO lost_key VALUES (1, 3)");
    expect(await sync(ends)).toMatchObject({ error: null, records_synced: 3, records_rejected: 0 });
  });

  test("booleans are words in columns of texts: 1 would be an enum's first member", async () => {
    await target.query(
      "CREATE TABLE said (id int PRIMARY KEY, e bool, v bool, s bool); INSERT INTO said VALUES (1, true, true, false)",
    );
    await source.query(
      "CREATE TABLE other.said (id int PRIMARY KEY, e enum('false','true'), v varchar(9), s set('true','false'), t text)",
    );
    expect((await sync({ from: pg, object: "said", to: other, table: "said" })).error).toBeNull();
    const [said] = await source.query("SELECT e, v, s FROM other.said");
    expect(said).toEqual([{ e: "true", v: "true", s: "false" }]);
  });

  test("a warning of the statement alone, as where the binary log keeps statements, rejects no row", async () => {
    const warning = { Level: "Note", Code: "1592", Message: "Unsafe statement written to the binary log" };
    const link = {
      rows: async () => [warning],
      run: async () => ({ affected: 1, warnings: 1 }),
      maxPacket: 1 << 20,
    } as unknown as MysqlLink;
    const plan = {
      columns: [{ name: "id", type: { kind: "int", bits: 32 } }],
      primaryKey: ["id"],
      keyCertain: true,
      kind: "upsert",
    } as unknown as WritePlan;
    const into = {
      link,
      table: "`t`",
      plan,
      upsert: "keys",
      nullableKey: false,
      forms: new Map(),
      left: [],
      marked: false,
    } as const;
    expect(await insertRows(into, [["1"]], (at) => at)).toMatchObject({ written: 1, rejects: [] });
  });

  test("statements fit into the smallest max_allowed_packet, whatever their characters take", async () => {
    await target.query(
      "CREATE TABLE packets (v varchar(200) PRIMARY KEY); INSERT INTO packets SELECT repeat('漢', 150) || i FROM generate_series(1, 1200) i",
    );
    const [[was]] = (await source.query("SELECT @@global.max_allowed_packet AS n")) as unknown as [{ n: number }[]];
    await source.query("SET GLOBAL max_allowed_packet = 1048576; CREATE TABLE other.packets (v varchar(200))");
    const ends = { from: pg, object: "packets", to: other, table: "packets" };
    const outcome = await sync(ends, { mode: "incremental", cursor_field: "v" });
    // As hex it would have twice as many bytes.
    await target.query(
      "CREATE TABLE long (id int, v bytea); INSERT INTO long VALUES (1, decode(repeat('00ff', 350000), 'hex'))",
    );
    const long = await sync({ ...ends, object: "long", table: "long" });
    await source.query(`SET GLOBAL max_allowed_packet = ${was?.n}`);
    expect(outcome).toMatchObject({ error: null, proof: { destination_count: 1200 } });
    expect(long).toMatchObject({ error: null, rejects: [] });
    const [[hash]] = (await source.query("SELECT MD5(v) AS md5 FROM other.long")) as unknown as [{ md5: string }[]];
    expect(await target.query("SELECT md5(v) AS md5 FROM long")).toEqual([hash]);
  });

  test("a full refresh leaves what other tables' rows refer to, and does what their keys say of rows that have gone", async () => {
    await target.query("CREATE TABLE parents (id int PRIMARY KEY, v text); INSERT INTO parents VALUES (1, 'new')");
    const ends = { from: pg, object: "parents", to: other, table: "parents" };
    for (const [rule, stay] of [
      ["CASCADE", [1]],
      ["SET NULL", [1, null]],
      ["RESTRICT", [1, 2]],
    ] as const) {
      await source.query(`DROP TABLE IF EXISTS other.children; DROP TABLE IF EXISTS other.parents; CREATE TABLE other.parents (id int PRIMARY KEY, v text);
        CREATE TABLE other.children (n int PRIMARY KEY, id int, FOREIGN KEY (id) REFERENCES other.parents (id) ON DELETE ${rule});
        INSERT INTO other.parents VALUES (1, 'old'), (2, 'gone'); INSERT INTO other.children VALUES (1, 1), (2, 2)`);
      const outcome = await sync(ends);
      const [children] = await source.query("SELECT id FROM other.children ORDER BY n");
      expect([rule, children]).toEqual([rule, stay.map((id) => ({ id }))]);
      if (rule === "RESTRICT") expect(outcome.error).toMatchObject({ code: "destination_refused" });
      else expect(outcome).toMatchObject({ error: null, records_synced: 1 });
    }
    await target.query("CREATE TABLE children (n int PRIMARY KEY, id int); INSERT INTO children VALUES (1, 1), (3, 9)");
    expect(await sync({ ...ends, object: "children", table: "children" })).toMatchObject({
      error: null,
      rejects: [{ key: "3" }],
    });
  });

  test("children may come before their parents in a table that refers to itself; those without one are quarantined", async () => {
    // A chain that begins with its last, a row that is its own parent, one without a parent and its child, two keys, in reading order.
    await target.query(`CREATE TABLE staff (id int PRIMARY KEY, boss int, v int);
      INSERT INTO staff SELECT i, nullif(i + 1, 6001), i FROM generate_series(1, 6000) i;
      INSERT INTO staff VALUES (7001, 7001, 0), (7002, 9999, 0), (7003, 7002, 0), (7004, 1, 0)`);
    await source.query(
      "CREATE TABLE other.staff (id int PRIMARY KEY, boss int, v int, FOREIGN KEY (boss) REFERENCES other.staff (id))",
    );
    const ends = { from: pg, object: "staff", to: other, table: "staff" };
    const arrived = { error: null, records_rejected: 2, rejects: [{ key: "7002" }, { key: "7003" }] };
    expect(await sync(ends)).toMatchObject({ ...arrived, records_synced: 6002 });
    await source.query("SET foreign_key_checks = 0; DELETE FROM other.staff; SET foreign_key_checks = 1");
    const followed = { mode: "incremental", cursor_field: "v", deletes: "hard" } as const;
    expect(await sync(ends, followed)).toMatchObject({ ...arrived, records_synced: 6002 });
    // Parents and children go together, in whatever order.
    await target.query(
      "DELETE FROM staff WHERE id BETWEEN 2 AND 6000; UPDATE staff SET boss = NULL, v = 6001 WHERE id = 1",
    );
    expect(await sync(ends, followed)).toMatchObject({ error: null });
    const [left] = await source.query("SELECT id, boss FROM other.staff ORDER BY id");
    expect(left).toEqual([
      { id: 1, boss: null },
      { id: 7001, boss: 7001 },
      { id: 7004, boss: 1 },
    ]);
  });

  test("no row is given up for a commit on the way: its parent may still come", async () => {
    await source.query(
      "CREATE TABLE other.late (id int PRIMARY KEY, boss int, FOREIGN KEY (boss) REFERENCES other.late (id))",
    );
    const type = { kind: "int", bits: 32 } as never;
    const columns = ["id", "boss"].map((name) => ({ name, type, nullable: name === "boss" }));
    const committed = async () => (await source.query("SELECT count(*) AS n FROM other.late"))[0];
    const seen: unknown[] = [];
    const spec = specOf(
      { from: "connector://late", object: "late", to: other, table: "late" },
      { mode: "incremental" },
    );
    const outcome = await runSync(spec, {
      openSource: async () =>
        ({
          open: async () => ({
            ...{
              schema: { columns, primaryKey: ["id"] },
              snapshot: false,
              changed: true,
              warnings: [],
              rawFormats: [],
            },
            partitions: [{ id: "all", records: null }],
            async *read() {
              const rows = Array.from({ length: 100_000 }, (_, at) => [String(at), at === 5 ? "100000" : null]);
              yield { rows, bytes: 1, state: { cursor: "1" } };
              yield { rows: [["100000", "100002"]], bytes: 1, state: { cursor: "2" } };
              seen.push(await committed());
              yield { rows: [["100002", null]], bytes: 1, state: { cursor: "3" } };
            },
            endState: () => ({ cursor: "3" }),
            close: async () => {},
          }),
          close: async () => {},
        }) as never,
      openDestination: () => openDestination(spec.destination),
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    expect(outcome).toMatchObject({ error: null, records_synced: 100_002, records_rejected: 0 });
    expect(seen).toEqual([[{ n: 0 }]]);
    const [rows] = await source.query("SELECT id, boss FROM other.late WHERE boss IS NOT NULL ORDER BY id");
    expect(rows).toEqual([
      { id: 5, boss: 100_000 },
      { id: 100_000, boss: 100_002 },
    ]);
  });

  test("of a key that comes twice the last record stays, though the first one waited for its parent; a null is no key", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "twice.csv");
    writeFileSync(file, "id,boss,v\n,3,x\n,3,y\n1,3,first\n2,,b\n1,2,last\n3,,c\n4,2,first\n4,3,last\n");
    for (const [mode, rejected] of [
      ["full_refresh", 4],
      ["incremental", 2],
    ] as const) {
      await source.query(
        `DROP TABLE IF EXISTS other.twice; CREATE TABLE other.twice (id int PRIMARY KEY, boss int, v varchar(9), FOREIGN KEY (boss) REFERENCES other.twice (id))`,
      );
      const ends = { from: file, object: "twice", to: other, table: "twice" };
      const outcome = await sync(ends, { mode, cursor_field: "v", primary_key: ["id"] });
      expect(outcome).toMatchObject({ error: null, records_read: 8, records_rejected: rejected });
      const [rows] = await source.query("SELECT id, boss, v FROM other.twice WHERE id IN (1, 4) ORDER BY id");
      expect(rows).toEqual([
        { id: 1, boss: 2, v: "last" },
        { id: 4, boss: 3, v: "last" },
      ]);
    }
  });

  test("nor does a full refresh by a user who may write that one table alone touch what refers to its rows", async () => {
    await target.query("CREATE TABLE elders (id int PRIMARY KEY, v text); INSERT INTO elders VALUES (1, 'new')");
    await source.query("CREATE USER narrow@'%' IDENTIFIED BY 'x'; GRANT ALL ON other._magic_state TO narrow@'%'");
    const narrow = other.replace(/\/\/[^@]*@/, "//narrow:x@");
    for (const [rule, grant, stay] of [
      ["CASCADE", "SELECT", [1]],
      ["RESTRICT", "SELECT", [1]],
      ["CASCADE", "SELECT, DELETE", [1]],
      ["SET NULL", "SELECT, UPDATE", [1, null]],
      ["CASCADE", "SELECT", [1, 2]],
      ["RESTRICT", "SELECT", [1, 2]],
    ] as const) {
      const writes = grant !== "SELECT";
      await source.query(`DROP TABLE IF EXISTS other.youths; DROP TABLE IF EXISTS other.elders; CREATE TABLE other.elders (id int PRIMARY KEY, v text);
        CREATE TABLE other.youths (n int PRIMARY KEY, id int, FOREIGN KEY (id) REFERENCES other.elders (id) ON DELETE ${rule} ON UPDATE CASCADE);
        INSERT INTO other.elders VALUES (1, 'old'), (2, 'gone'); INSERT INTO other.youths VALUES (1, 1)${writes || stay.length > 1 ? ", (2, 2)" : ""};
        GRANT ALL ON other.elders TO narrow@'%'; GRANT ${grant} ON other.youths TO narrow@'%'`);
      const { error } = await sync({ from: pg, object: "elders", to: narrow, table: "elders" });
      const refused = rule === "RESTRICT" ? "destination_refused" : "permission_denied";
      expect([rule, grant, error?.code]).toEqual([rule, grant, !writes && stay.length > 1 ? refused : undefined]);
      const [youths] = await source.query("SELECT id FROM other.youths ORDER BY n");
      expect(youths).toEqual(stay.map((id) => ({ id })));
      await source.query("REVOKE ALL ON other.youths FROM narrow@'%'");
    }
  });

  test("among many bad rows what follows each is not sent again and again", async () => {
    await source.query(`CREATE TABLE many (id int PRIMARY KEY, v varchar(9), pad varchar(200)); CREATE TABLE other.many (id int PRIMARY KEY, v varchar(3), pad varchar(200));
      INSERT INTO many SELECT seq, IF(seq % 2, 'long', 'ok'), REPEAT('x', 200) FROM (WITH RECURSIVE n AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < 600) SELECT seq FROM n) s`);
    const received = async () => {
      const [[row]] = (await source.query("SHOW GLOBAL STATUS LIKE 'Bytes_received'")) as unknown as [
        { Value: string }[],
      ];
      return Number(row?.Value);
    };
    const before = await received();
    const outcome = await sync({ from: my, object: "src.many", to: other, table: "many" });
    expect(outcome).toMatchObject({ error: null, records_rejected: 300, proof: { destination_count: 300 } });
    expect((await received()) - before).toBeLessThan(4_000_000);
  });

  test("a table without transactions is refused, and a server that forgets commits is told of", async () => {
    await source.query("CREATE TABLE old_engine (id bigint, v int) ENGINE = MyISAM");
    await target.query("CREATE TABLE old_engine AS SELECT 1::bigint AS id, 2 AS v");
    expect((await sync({ from: pg, object: "old_engine", to: my, table: "old_engine" })).error).toMatchObject({
      code: "destination_refused",
      message: expect.stringContaining("MyISAM, which has no transactions"),
    });
    await source.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
    const forgetful = await sync({ from: pg, object: "old_engine", to: my, table: "new_engine" });
    await source.query("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    expect(forgetful).toMatchObject({ status: "completed", warnings: [{ code: "commits_not_durable" }] });
    expect((await sync({ from: pg, object: "old_engine", to: my, table: "new_engine" })).warnings).toEqual([]);
  });

  test("a column that the table there computes itself is refused by name before a row is read", async () => {
    await source.query("CREATE TABLE computing (id int PRIMARY KEY, v int AS (id * 2) STORED)");
    await target.query("CREATE TABLE computing AS SELECT 1 AS id, 2 AS v");
    const run = (columns: string[] | null) =>
      sync({ from: pg, object: "computing", to: my, table: "computing" }, { columns });
    expect(await run(null)).toMatchObject({
      records_read: 0,
      error: { code: "destination_refused", message: expect.stringContaining('src.computing computes "v" itself') },
    });
    expect(await run(["id"])).toMatchObject({ status: "completed", records_synced: 1 });
  });

  test("nothing is filled in: a zero stays one in a counting column, a null that it or a timestamp would replace is quarantined", async () => {
    await source.query(
      "CREATE TABLE counting (id int AUTO_INCREMENT PRIMARY KEY, t timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)",
    );
    await target.query(
      "CREATE TABLE counting (id int, t timestamptz); INSERT INTO counting VALUES (0, '2020-01-01'), (NULL, '2020-01-01'), (3, NULL)",
    );
    const outcome = await sync({ from: pg, object: "counting", to: my, table: "counting" });
    expect(outcome.rejects.map(({ key, column }) => [key, column])).toEqual([
      ["row 2", "id"],
      ["row 3", "t"],
    ]);
    const [rows] = await source.query("SELECT id, CAST(t AS CHAR) AS t FROM counting");
    expect(rows).toEqual([{ id: 0, t: "2020-01-01 00:00:00" }]);
  });

  test("what a server sets for every connection neither changes a text nor cuts a result", async () => {
    await source.query(`CREATE TABLE smile (id int PRIMARY KEY, t text CHARACTER SET utf8mb4); INSERT INTO smile VALUES (1, '😀 é'), (2, 'é');
      CREATE USER plain@'%' IDENTIFIED BY 'p'; GRANT ALL ON src.* TO plain@'%'; GRANT ALL ON other.* TO plain@'%'`);
    const plain = (url: string) => url.replace(/magic:[^@]*@/, "plain:p@");
    for (const setting of [
      "SET NAMES utf8mb3",
      "SET NAMES latin1",
      "SET sql_select_limit = 1",
      "SET autocommit = 0, max_error_count = 0",
    ]) {
      await source.query(`SET GLOBAL init_connect = '${setting}'`);
      expect((await sync({ from: plain(my), object: "smile", to: pg, table: "smile" })).error).toBeNull();
      expect((await sync({ from: pg, object: "smile", to: plain(other), table: "smile" })).error).toBeNull();
      await source.query("SET GLOBAL init_connect = ''");
      expect(await target.lines("smile")).toEqual(['(1,"😀 é")', "(2,é)"]);
      const [rows] = await source.query("SELECT * FROM other.smile ORDER BY id");
      expect(rows).toEqual([
        { id: 1, t: "😀 é" },
        { id: 2, t: "é" },
      ]);
    }
  });

  test("incremental: rows without a cursor and dates before which there is nothing are not left out", async () => {
    const run = (table: string, more = {}) =>
      sync({ from: my, object: table, to: other, table }, { mode: "incremental", cursor_field: "c", ...more });
    const ids = async (table: string) => {
      const [rows] = await source.query(`SELECT id FROM other.${table} ORDER BY id`);
      return (rows as { id: number }[]).map(({ id }) => id);
    };
    await source.query(`SET sql_mode = ''; CREATE TABLE early (id int PRIMARY KEY, c datetime(6));
      INSERT INTO early VALUES (1, '0000-00-00 00:00:00'), (2, NULL); CREATE TABLE keyless (id int, c bigint); INSERT INTO keyless VALUES (1, NULL)`);
    expect((await run("early")).error).toBeNull();
    await source.query("INSERT INTO early VALUES (3, '0001-01-01 00:00:00'), (4, NULL)");
    expect((await run("early")).warnings).toEqual([]);
    await source.query("INSERT INTO early VALUES (5, '0001-01-01 00:00:01')");
    expect((await run("early")).error).toBeNull();
    expect(await ids("early")).toEqual([1, 2, 3, 4, 5]);
    // Without a key they cannot be told from those that were read.
    expect((await run("keyless")).warnings).toMatchObject([{ code: "null_cursor" }]);
    await source.query("INSERT INTO keyless VALUES (2, 9007199254740992), (3, 9007199254740993)");
    await run("keyless");
    await source.query("INSERT INTO keyless VALUES (4, 9007199254740994)");
    await run("keyless");
    expect(await ids("keyless")).toEqual([1, 2, 3, 4]);
    await source.query(
      "CREATE TABLE by_float (id int PRIMARY KEY, c double); INSERT INTO by_float VALUES (1, 20000.5)",
    );
    await run("by_float");
    await source.query("INSERT INTO by_float VALUES (2, 15000.5), (3, 5)");
    await run("by_float");
    expect(await ids("by_float")).toEqual([1, 2]);
    const texts: readonly (readonly [table: string, key: string, values: readonly string[]])[] = [
      ["by_digits", "", ["9", "10", "11", "100", "99999999999999999999", "100000000000000000000"]],
      ["by_keyed_digits", "PRIMARY KEY", ["9", "10", "11"]],
      ["by_times", "PRIMARY KEY", ["2024-01-01T10:00:00Z", "2024-01-01 10:00:00.5", "2024-01-01T09:00:01-02:00"]],
    ];
    for (const [table, key, values] of texts) {
      await source.query(`CREATE TABLE ${table} (id int ${key}, c varchar(40))`);
      for (const [at, value] of values.entries()) {
        await source.query(`INSERT INTO ${table} VALUES (${at}, '${value}')`);
        expect([table, (await run(table)).error]).toEqual([table, null]);
        expect([table, await ids(table)]).toEqual([table, values.slice(0, at + 1).map((_, id) => id)]);
      }
    }
    await source.query("INSERT INTO by_digits VALUES (6, '7.5')");
    expect((await run("by_digits")).error).toMatchObject({
      code: "validation_failed",
      message: expect.stringContaining('holds "99999999999999999999" and "7.5" as texts'),
    });
    await source.query("CREATE TABLE by_bytes (id int, c binary(2)); INSERT INTO by_bytes VALUES (1, X'80FE')");
    await run("by_bytes");
    await source.query("INSERT INTO by_bytes VALUES (2, X'80FF')");
    await run("by_bytes");
    expect(await ids("by_bytes")).toEqual([1, 2]);
  });

  test("a table that was made anew with lower cursors is read whole by a key, and told of without one", async () => {
    for (const [table, key, warnings, there] of [
      ["anew", "PRIMARY KEY", [], ["(1)", "(2)", "(3)"]],
      ["anew_bare", "", [{ code: "cursor_went_back" }], ["(1)", "(2)"]],
    ] as const) {
      const run = () =>
        sync({ from: my, object: `src.${table}`, to: pg, table }, { mode: "incremental", cursor_field: "at" });
      const fill = (rows: string) =>
        source.query(
          `CREATE OR REPLACE TABLE ${table} (id int ${key}, at datetime(6)); INSERT INTO ${table} VALUES ${rows}`,
        );
      await fill("(1, '2024-01-01 10:00:00.5'), (2, '2024-01-01 11:00:00.5')");
      expect(await run()).toMatchObject({ error: null, warnings: [] });
      await fill("(3, '2023-01-01')");
      expect(await run()).toMatchObject({ error: null, warnings });
      expect(await target.lines(table, "id")).toEqual(there);
    }
  });

  test("a run whose record somebody changed since its snapshot is tried again", async () => {
    await source.query(`CREATE TABLE other.changed (id int PRIMARY KEY); CREATE TABLE other.once (n int) ENGINE = Aria;
      CREATE TRIGGER other.refuses BEFORE INSERT ON other.changed FOR EACH ROW IF NOT EXISTS (SELECT 1 FROM other.once) THEN
        INSERT INTO other.once VALUES (1); SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020, MESSAGE_TEXT = 'Record has changed'; END IF`);
    await target.query("CREATE TABLE changed (id int PRIMARY KEY); INSERT INTO changed VALUES (1)");
    const options = { mode: "incremental", cursor_field: "id" } as const;
    const outcome = await sync({ from: pg, object: "changed", to: other, table: "changed" }, options);
    expect(outcome).toMatchObject({ error: null, records_synced: 1 });
  });

  test("a cancelled run lets go of what it held at the other end at once", async () => {
    await source.query(
      "CREATE TABLE held (id int PRIMARY KEY, t text); INSERT INTO held SELECT seq, REPEAT('x', 2000) FROM seq_1_to_5000",
    );
    const folder = temporaryFolder();
    const controller = new AbortController();
    const run = sync({ from: my, object: "src.held", to: join(folder, "held.csv"), table: "t" }, {}, controller.signal);
    while (readdirSync(folder).every((name) => !name.endsWith(".partial"))) await new Promise(setImmediate);
    controller.abort();
    expect(await run).toMatchObject({ status: "canceled" });
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a connection that is cut while rows are read ends the run at once", async () => {
    const { port } = new URL(my);
    const proxy = await cuttingProxy(() => net.connect(Number(port), "127.0.0.1"), 200_001);
    await source.query("CREATE TABLE cut AS SELECT seq AS id, repeat('x', 100) AS t FROM seq_1_to_5000");
    const through = my.replace(`:${port}/`, `:${proxy.port}/`);
    const outcome = await sync({ from: through, object: "src.cut", to: pg, table: "cut" });
    proxy.close();
    expect(outcome).toMatchObject({ status: "failed", error: { code: "connection_lost" } });
  });

  test("a connection that is lost while nobody asks it anything fails whoever asks next, also for rows one after another", async () => {
    for (const ask of [
      (link: MysqlLink) => link.rows("SELECT 1 AS one"),
      (link: MysqlLink) => Array.fromAsync(link.stream("SELECT 1 AS one")),
    ]) {
      const link = await connectMysql({ url: my, side: "source" });
      const [row] = await link.rows("SELECT connection_id() AS id");
      await source.query(`KILL ${row?.["id"]}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const refused = await ask(link).catch((error: unknown) => mysqlError(error, "source", "reading"));
      expect([String(ask), refused]).toMatchObject([String(ask), { code: "connection_lost" }]);
      await link.close();
    }
  });

  test("a run whose source gives no row says that it waits for those, not for what it waited for before", async () => {
    await source.query(
      "CREATE TABLE silent (id int PRIMARY KEY); INSERT INTO silent VALUES (1); LOCK TABLES silent WRITE",
    );
    for (const to of [pg, other]) {
      const outcome = await sync({ from: my, object: "src.silent", to, table: "silent" }, { stall_timeout_s: 2 });
      expect(outcome.error).toMatchObject({
        code: "run_stalled",
        message: expect.stringMatching(/waiting for rows of src\.silent\.$/),
      });
    }
    await source.query("UNLOCK TABLES");
  });

  test("what is no MySQL in the middle of a connection ends the run, and is no failure of the source's", async () => {
    const { port } = new URL(my);
    await source.query("CREATE TABLE garbled AS SELECT seq AS id, repeat('x', 100) AS t FROM seq_1_to_5000");
    for (const garble of [
      // The driver alone would take it for the next row.
      (packet: Buffer) => packet.writeUInt8((packet.readUInt8(3) + 7) & 0xff, 3),
      (packet: Buffer) => packet.fill(0xff, 5),
    ]) {
      const proxy = await garblingProxy(() => net.connect(Number(port), "127.0.0.1"), 200_001, garble);
      const through = my.replace(`:${port}/`, `:${proxy.port}/`);
      const outcome = await sync({ from: through, object: "src.garbled", to: pg, table: "garbled" });
      proxy.close();
      expect([String(garble), outcome]).toMatchObject([
        String(garble),
        { status: "failed", error: { code: "connection_lost" } },
      ]);
    }
  });

  test("wrong credentials, missing tables and dead servers are told apart", async () => {
    const wrong = await sync({ from: my.replace(/:pass[^@]*@/, ":nope@"), object: "src.small", to: pg, table: "x" });
    expect(wrong).toMatchObject({ status: "failed", error: { code: "credentials_rejected" } });
    expect(JSON.stringify(wrong)).not.toContain("nope");
    expect(await sync({ from: my, object: "src.nowhere", to: pg, table: "x" })).toMatchObject({
      error: { code: "object_not_found" },
    });
    // A view of what has gone has no columns: not a run of no records.
    await source.query("CREATE TABLE what (id int); CREATE VIEW stale AS SELECT id FROM what; DROP TABLE what");
    expect(await sync({ from: my, object: "src.stale", to: pg, table: "x" })).toMatchObject({
      error: { code: "object_not_found" },
    });
    // Who is kept out, and who may come later.
    await source.query(`CREATE USER spent IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1; CREATE USER worn IDENTIFIED BY 'x' PASSWORD EXPIRE;
      CREATE USER shut IDENTIFIED BY 'x' ACCOUNT LOCK; GRANT ALL ON *.* TO spent, worn, shut`);
    const as = (user: string) => my.replace(/magic:[^@]*@/, `${user}:x@`);
    const holding = await mysql.createConnection(as("spent"));
    for (const [user, code] of [
      ["spent", "unreachable"],
      ["worn", "credentials_rejected"],
      ["shut", "credentials_rejected"],
    ] as const)
      expect((await sync({ from: as(user), object: "src.small", to: pg, table: "x" })).error, user).toMatchObject({
        code,
      });
    await holding.end();
    expect(await sync({ from: "mysql://a:b@127.0.0.1:1/x", object: "x.y", to: pg, table: "x" })).toMatchObject({
      error: { code: "unreachable" },
    });
  });
});
