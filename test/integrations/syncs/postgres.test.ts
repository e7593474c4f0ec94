// PostgreSQL to PostgreSQL: types, modes, deletes, drift, what stays behind after a failure.
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SyncMode, SyncSpec } from "#contract/sync.ts";
import { openDestination, openSource } from "#daemon/integrations/connectors/open.ts";
import { runSync } from "#daemon/integrations/engine/run.ts";
import type { ReadRequest, SourceStream } from "#daemon/integrations/engine/source.ts";
import { postgresMissing } from "#test/postgres.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { within } from "../../patience.ts";
import { extremes } from "./extremes.ts";
import { connect, openPair, type Pair, specOf, sync } from "./harness.ts";

describe.skipIf(postgresMissing())("postgres to postgres", () => {
  let pair: Pair;
  let { from, to, source, target } = {} as Pair;

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
    await source.query(extremes);
  });
  afterAll(() => pair?.close());
  const ends = (object: string, table = object) => ({ from, object, to, table });
  const strays = () =>
    target.query(
      "SELECT relname FROM pg_class WHERE relname LIKE '\\_magic\\_%' AND relkind = 'r' AND relname <> '_magic_state'",
    );

  test("every type at its extremes arrives as it was", async () => {
    const outcome = await sync(ends("public.extremes"));
    expect(outcome.error).toBeNull();
    expect(outcome).toMatchObject({ status: "completed", records_read: 4, records_synced: 4, records_rejected: 0 });
    expect(await target.lines("extremes")).toEqual(await source.lines("extremes"));
    const again = await sync(ends("public.extremes"));
    expect(again.error).toBeNull();
    expect(await target.lines("extremes")).toEqual(await source.lines("extremes"));
  });

  test("a run proves itself by counts and, with hashable types, by a checksum", async () => {
    await source.query(
      "CREATE TABLE proven AS SELECT i AS id, i * 1.5 AS n, 'x' || i AS t, ARRAY[i] AS a FROM generate_series(1, 1000) i",
    );
    const outcome = await sync(ends("proven"));
    expect(outcome.proof).toMatchObject({
      source_count: 1000,
      destination_count: 1000,
      checksum: expect.stringMatching(/^-?\d+$/),
    });
  });

  test("a table without rows arrives as a table without rows", async () => {
    await source.query("CREATE TABLE empty (id bigint PRIMARY KEY, t text)");
    expect(await sync(ends("empty"))).toMatchObject({ status: "completed", records_read: 0 });
    expect(await target.query("SELECT count(*) AS n FROM empty")).toEqual([{ n: "0" }]);
  });

  test("a large table is read from its first row, wherever somebody else is reading it", async () => {
    await source.query("CREATE TABLE large AS SELECT i AS id, repeat('x', 1000) AS t FROM generate_series(1, 40000) i");
    const reader = await connect(from);
    await reader.query("BEGIN; DECLARE halfway CURSOR FOR SELECT FROM large; MOVE 20000 FROM halfway");
    const file = join(temporaryFolder(), "large.jsonl");
    expect(await sync({ ...ends("large"), to: file })).toMatchObject({ error: null, records_synced: 40_000 });
    expect(readFileSync(file, "latin1").slice(0, 8)).toBe('{"id":1,');
    await reader.end();
    await source.query("DROP TABLE large");
  });

  test("names are taken as they are: capitals, dots, quotes", async () => {
    await source.query(
      `CREATE SCHEMA "My.Schema"; CREATE TABLE "My.Schema"."T ""x""" (id int PRIMARY KEY, "Sélect" text); INSERT INTO "My.Schema"."T ""x""" VALUES (1, 'a')`,
    );
    const outcome = await sync(ends('"My.Schema"."T ""x"""', '"Other.One"."T.y"'));
    expect(outcome.error).toBeNull();
    expect(await target.lines('"Other.One"."T.y"')).toEqual(["(1,a)"]);
  });

  test("a full refresh keeps indexes, grants, views and triggers of the old table", async () => {
    await source.query(
      "CREATE TABLE kept (id int PRIMARY KEY, t text); INSERT INTO kept SELECT i, 'n' || i FROM generate_series(1, 10) i",
    );
    await target.query(
      "CREATE UNLOGGED TABLE kept (id int PRIMARY KEY, t text) WITH (fillfactor = 70, autovacuum_enabled = off); CREATE INDEX kept_t ON kept (t); CREATE ROLE reader; GRANT SELECT ON kept TO reader; COMMENT ON TABLE kept IS 'mine'; INSERT INTO kept VALUES (99, 'old')",
    );
    expect(await sync(ends("kept"))).toMatchObject({ status: "completed" });
    expect(await target.lines("kept")).toEqual(await source.lines("kept"));
    expect(await target.query("SELECT indexname FROM pg_indexes WHERE tablename = 'kept' ORDER BY 1")).toEqual([
      { indexname: "kept_pkey" },
      { indexname: "kept_t" },
    ]);
    expect(
      await target.query(
        "SELECT has_table_privilege('reader', 'kept', 'SELECT') AS ok, obj_description(oid) AS about, reloptions::text AS options, relpersistence AS persistence FROM pg_class WHERE oid = 'kept'::regclass",
      ),
    ).toEqual([{ ok: "t", about: "mine", options: "{fillfactor=70,autovacuum_enabled=off}", persistence: "u" }]);
    await target.query("CREATE VIEW over_kept AS SELECT * FROM kept");
    await source.query("DELETE FROM kept WHERE id > 5");
    expect(await sync(ends("kept"))).toMatchObject({ status: "completed", records_read: 5 });
    expect(await target.query("SELECT count(*) AS n FROM over_kept")).toEqual([{ n: "5" }]);
  });

  test("a full refresh keeps what else hangs on a table: rules, policies, its replica identity, columns of its type, its access method", async () => {
    await source.query("CREATE TABLE hung (id int PRIMARY KEY, v int); INSERT INTO hung VALUES (1, 1)");
    await target.query("CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler");
    const facts = `SELECT (SELECT count(*) FROM pg_rules WHERE tablename LIKE 'hung%') AS rules, (SELECT count(*) FROM pg_policy) AS policies, (SELECT relreplident FROM pg_class WHERE relname = 'hung') AS replica,
      (SELECT amname FROM pg_am a JOIN pg_class c ON c.relam = a.oid WHERE relname = 'hung') AS method`;
    for (const [more, kept] of [
      ["CREATE RULE r AS ON DELETE TO hung WHERE old.id < 0 DO INSTEAD NOTHING", { rules: "1" }],
      ["CREATE POLICY p ON hung USING (id > 0)", { policies: "1" }],
      ["ALTER TABLE hung REPLICA IDENTITY FULL", { replica: "f" }],
      ["CREATE TABLE holder (h hung, many hung[])", {}],
      ["ALTER TABLE hung SET ACCESS METHOD heap2", { method: "heap2" }],
    ] as const) {
      await target.query(`DROP TABLE IF EXISTS hung CASCADE; CREATE TABLE hung (id int PRIMARY KEY, v int); ${more}`);
      const { error } = await sync({ from, object: "hung", to, table: "hung" });
      expect(error, more).toBeNull();
      expect(await target.lines("hung")).toEqual(["(1,1)"]);
      expect((await target.query(facts))[0], more).toMatchObject(kept);
    }
  });

  test("a full refresh keeps a table's statistics, comments on its indexes and constraints, and every constraint's name", async () => {
    await source.query("CREATE TABLE told (id int PRIMARY KEY, a int, b text); INSERT INTO told VALUES (1, 1, 'x')");
    await target.query(`CREATE TABLE others (id int PRIMARY KEY); INSERT INTO others VALUES (1); CREATE SCHEMA apart;
      CREATE TABLE told (id int PRIMARY KEY WITH (fillfactor = 50), a int, b text, n int GENERATED ALWAYS AS IDENTITY, CONSTRAINT others FOREIGN KEY (a) REFERENCES others) WITH (toast.autovacuum_enabled = off);
      CREATE INDEX told_a ON told (a); ALTER TABLE told CLUSTER ON told_a; COMMENT ON INDEX told_a IS 'it''s'; COMMENT ON CONSTRAINT others ON told IS 'mine';
      CREATE STATISTICS told_ab ON a, b FROM told; ALTER STATISTICS told_ab SET STATISTICS 7; COMMENT ON STATISTICS told_ab IS 's'; CREATE STATISTICS apart.told_e ON (a + 1) FROM told;
      CREATE INDEX told_e ON told ((a + 1)); ALTER INDEX told_e ALTER COLUMN 1 SET STATISTICS 9; CREATE ROLE counter; GRANT USAGE ON SEQUENCE told_n_seq TO counter; COMMENT ON SEQUENCE told_n_seq IS 'n';
      ALTER TABLE told ALTER COLUMN b SET STATISTICS 500, ALTER COLUMN a SET (n_distinct = 5)`);
    const facts = `SELECT (SELECT json_agg(json_build_array(pg_get_statisticsobjdef(oid), stxstattarget, obj_description(oid)) ORDER BY stxname) FROM pg_statistic_ext WHERE stxrelid = t.oid)::text AS statistics,
      (SELECT json_agg(json_build_array(attname, attstattarget, attoptions) ORDER BY attnum) FROM pg_attribute WHERE attrelid = t.oid AND attnum > 0)::text AS columns,
      (SELECT json_agg(json_build_array(conname, obj_description(oid)) ORDER BY conname) FROM pg_constraint WHERE conrelid = t.oid)::text AS constraints,
      (SELECT json_build_array(relacl, obj_description(oid)) FROM pg_class WHERE oid = 'told_n_seq'::regclass)::text AS sequence,
      (SELECT json_agg(json_build_array(relname, reloptions, indisclustered, obj_description(c.oid), (SELECT max(attstattarget) FROM pg_attribute WHERE attrelid = c.oid)) ORDER BY relname) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = t.oid)::text AS indexes,
      (SELECT reloptions FROM pg_class WHERE oid = t.reltoastrelid)::text AS toast FROM pg_class t WHERE t.oid = 'told'::regclass`;
    const before = await target.query(facts);
    expect(await sync(ends("told"))).toMatchObject({ status: "completed", records_synced: 1 });
    expect(await target.query(facts)).toEqual(before);
    expect(JSON.stringify(before)).toMatch(/told_ab.*it's/);
  });

  test("a key that is checked at the commit only is merged into as well", async () => {
    await source.query(
      "CREATE TABLE at_commit (id int PRIMARY KEY, c int); INSERT INTO at_commit VALUES (1, 1), (2, 1)",
    );
    await target.query(
      "CREATE TABLE at_commit (id int PRIMARY KEY DEFERRABLE, c int); INSERT INTO at_commit VALUES (1, 0)",
    );
    const ask = { mode: "incremental", cursor_field: "c" } as const;
    expect((await sync({ from, object: "at_commit", to, table: "at_commit" }, ask)).error).toBeNull();
    expect(await target.lines("at_commit")).toEqual(["(1,1)", "(2,1)"]);
  });

  test("a full refresh gives nobody a privilege that the old table did not, and keeps those on columns", async () => {
    await source.query("CREATE TABLE salaries (id int PRIMARY KEY, pay int); INSERT INTO salaries VALUES (1, 2)");
    await target.query(
      "CREATE ROLE clerk; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO clerk, PUBLIC; CREATE TABLE salaries (id int PRIMARY KEY, pay int); REVOKE ALL ON salaries FROM clerk, PUBLIC; GRANT SELECT (id) ON salaries TO clerk",
    );
    expect(await sync(ends("salaries"))).toMatchObject({ status: "completed" });
    await target.query("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM clerk, PUBLIC");
    expect(
      await target.query(
        "SELECT has_column_privilege('clerk', 'salaries', 'id', 'SELECT') AS id, has_column_privilege('clerk', 'salaries', 'pay', 'SELECT') AS pay",
      ),
    ).toEqual([{ id: "t", pay: "f" }]);
  });

  test("a role that may make tables in one schema alone needs no right to make schemas", async () => {
    await source.query("CREATE TABLE least (id int PRIMARY KEY); INSERT INTO least VALUES (1)");
    await target.query("CREATE ROLE loader LOGIN; CREATE SCHEMA raw; GRANT USAGE, CREATE ON SCHEMA raw TO loader");
    const outcome = await sync({ ...ends("least", "raw.least"), to: to.replace("postgres@", "loader@") });
    expect([outcome.error, outcome.records_synced]).toEqual([null, 1]);
  });

  test("two syncs that replace one table take turns, and its indexes stay", async () => {
    await source.query("CREATE TABLE turns AS SELECT i AS id, 'x' || i AS t FROM generate_series(1, 20000) i");
    for (let round = 0; round < 4; round++) {
      const outcomes = await Promise.all(
        ["sync_a", "sync_b", "sync_c"].map((sync_id) => sync(ends("turns"), { sync_id })),
      );
      expect(outcomes.map(({ error }) => error)).toEqual([null, null, null]);
      expect(await target.query("SELECT count(*) AS n FROM turns")).toEqual([{ n: "20000" }]);
      if (round === 0) await target.query("ALTER TABLE turns ADD PRIMARY KEY (id); CREATE INDEX turns_t ON turns (t)");
      expect(
        await target.query("SELECT indexname AS name FROM pg_indexes WHERE tablename = 'turns' ORDER BY 1"),
      ).toEqual([{ name: "turns_pkey" }, { name: "turns_t" }]);
    }
  });

  test("rows that the destination refuses are quarantined with their reasons, the others arrive", async () => {
    await source.query(
      "CREATE TABLE bad (id int PRIMARY KEY, t text); INSERT INTO bad SELECT i, CASE WHEN i % 100 = 0 THEN 'no' ELSE 'yes' END FROM generate_series(1, 1000) i",
    );
    await target.query("CREATE TABLE bad (id int PRIMARY KEY, t text CHECK (t <> 'no'))");
    const outcome = await sync(ends("bad"));
    expect(outcome.error).toBeNull();
    expect(outcome).toMatchObject({ records_read: 1000, records_synced: 990, records_rejected: 10 });
    expect(outcome.rejects[0]).toMatchObject({ key: "100", reason: expect.stringContaining("check constraint") });
    expect(await target.query("SELECT count(*) AS n FROM bad")).toEqual([{ n: "990" }]);
    const failed = await sync(ends("bad"), { on_bad_record: "fail" });
    expect(failed).toMatchObject({ status: "failed", error: { code: "bad_record" } });
    expect(await target.query("SELECT count(*) AS n FROM bad")).toEqual([{ n: "990" }]);
    expect(await strays()).toEqual([]);
  });

  test("duplicates of an asked-for key are quarantined but for the last", async () => {
    await source.query(
      "CREATE TABLE doubled (id int, t text); INSERT INTO doubled VALUES (1, 'a'), (2, 'b'), (1, 'c'), (NULL, 'd')",
    );
    const outcome = await sync(ends("doubled"), { primary_key: ["id"] });
    expect(outcome).toMatchObject({ status: "completed", records_read: 4, records_synced: 2, records_rejected: 2 });
    expect(await target.lines("doubled")).toEqual(["(1,c)", "(2,b)"]);
  });

  test("incremental runs upsert, take late committers, and keep their cursor as text", async () => {
    await source.query(
      "CREATE TABLE orders (id int PRIMARY KEY, t text, at timestamptz(6)); INSERT INTO orders SELECT i, 'v1', '2024-01-01 00:00:00.000001+00'::timestamptz + i * interval '1 second' FROM generate_series(1, 100) i",
    );
    const run = () => sync(ends("orders"), { mode: "incremental", cursor_field: "at" });
    expect(await run()).toMatchObject({ status: "completed", records_read: 100 });
    const late = await connect(from);
    await late.query(
      "BEGIN; INSERT INTO orders VALUES (500, 'late', '2024-01-01 00:00:00+00'); SAVEPOINT a; INSERT INTO orders VALUES (501, 'late too', '2023-01-01'); RELEASE SAVEPOINT a",
    );
    await source.query(
      "INSERT INTO orders VALUES (200, 'new', '2025-01-01 00:00:00.123456+00'); UPDATE orders SET t = 'v2', at = '2025-01-02' WHERE id = 1",
    );
    expect(await run()).toMatchObject({ status: "completed", records_read: 2 });
    await late.query("COMMIT");
    await late.end();
    expect(await run()).toMatchObject({ status: "completed", records_read: 2 });
    expect(await target.lines("orders")).toEqual(await source.lines("orders"));
    expect(await target.query("SELECT state->>'cursor' AS cursor FROM _magic_state WHERE stream = 'orders'")).toEqual([
      { cursor: "2025-01-02 00:00:00+00" },
    ]);
    const idle = await run();
    expect(idle).toMatchObject({
      status: "completed",
      records_read: 0,
      proof: { source_count: 103, destination_count: 103 },
    });
    expect(await target.query("SELECT state->>'cursor' AS cursor FROM _magic_state WHERE stream = 'orders'")).toEqual([
      { cursor: "2025-01-02 00:00:00+00" },
    ]);
  });

  test("rows of a partition that is attached, and of a table that takes another's place, are found whoever wrote them when", async () => {
    await source.query(
      "CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id); CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (100) TO (200); INSERT INTO parts VALUES (100, 5); CREATE TABLE parts_a (id int PRIMARY KEY, n int); INSERT INTO parts_a VALUES (1, 0); CREATE TABLE green (id int PRIMARY KEY, n int); INSERT INTO green VALUES (1, 0)",
    );
    const run = (table: string) => sync(ends(table), { mode: "incremental", cursor_field: "n", deletes: "hard" });
    expect(await run("parts")).toMatchObject({ records_read: 1 });
    await source.query("ALTER TABLE parts ATTACH PARTITION parts_a FOR VALUES FROM (0) TO (100)");
    expect(await run("parts")).toMatchObject({ records_read: 1 });
    await source.query("ALTER TABLE parts DETACH PARTITION parts_a");
    expect(await run("parts")).toMatchObject({ records_read: 0, proof: { destination_count: 1 } });
    await source.query("ALTER TABLE parts ATTACH PARTITION parts_a FOR VALUES FROM (0) TO (100)");
    expect(await run("parts")).toMatchObject({ records_read: 1, proof: { source_count: 2, destination_count: 2 } });
    await source.query("CREATE TABLE blue (id int PRIMARY KEY, n int); INSERT INTO blue VALUES (2, 5)");
    expect(await run("blue")).toMatchObject({ records_read: 1 });
    await source.query("DROP TABLE blue; ALTER TABLE green RENAME TO blue");
    expect(await run("blue")).toMatchObject({ records_read: 1 });
    expect(await target.lines("blue")).toEqual(["(1,0)"]);
  });

  test("after a standby's promotion, which may give a lost transaction's number again, everything is read once more", async () => {
    await source.query(
      "CREATE TABLE led (id int PRIMARY KEY, n int); INSERT INTO led VALUES (1, 1), (2, 2); CREATE TABLE led_log AS SELECT * FROM led",
    );
    const run = (table = "led") => sync(ends(table), { mode: "incremental", cursor_field: "n" });
    await run("led_log");
    const reads = [(await run()).records_read, (await run()).records_read];
    await target.query(
      `UPDATE _magic_state SET state = jsonb_set(state, '{horizon,timeline}', '"0"') WHERE stream LIKE 'led%' AND state #>> '{horizon,timeline}' = '1'`,
    );
    // Without a key that would bring every row twice.
    expect((await run("led_log")).error).toMatchObject({ code: "validation_failed" });
    expect([...reads, (await run()).records_read, (await run()).records_read]).toEqual([2, 0, 2, 0]);
  });

  test("a cursor field is of any type that has an order, and refused by name where it has none", async () => {
    await source.query(
      "CREATE TABLE cursors (id int PRIMARY KEY, u uuid, p point); INSERT INTO cursors VALUES (1, '00000000-0000-0000-0000-000000000009', '(1,1)'), (2, '00000000-0000-0000-0000-000000000010', '(2,2)')",
    );
    const run = (cursor_field: string) => sync(ends("cursors"), { mode: "incremental", cursor_field });
    expect((await run("p")).error).toMatchObject({ code: "validation_failed" });
    expect(await run("u")).toMatchObject({ records_synced: 2 });
    expect(await target.query("SELECT state->>'cursor' AS c FROM _magic_state WHERE stream = 'cursors'")).toEqual([
      { c: "00000000-0000-0000-0000-000000000010" },
    ]);
  });

  test("without a primary key an incremental run appends each row once, late ones too", async () => {
    await source.query(
      "CREATE TABLE events (n bigint, t text); INSERT INTO events SELECT i, 'a' FROM generate_series(1, 50) i",
    );
    const run = () => sync(ends("events"), { mode: "incremental", cursor_field: "n" });
    const late = await connect(from);
    await late.query("BEGIN; INSERT INTO events VALUES (10, 'late')");
    expect(await run()).toMatchObject({ records_read: 50 });
    await source.query("INSERT INTO events VALUES (51, 'b'), (51, 'b')");
    expect(await run()).toMatchObject({ records_read: 2 });
    await late.query("COMMIT");
    await late.end();
    expect(await run()).toMatchObject({ records_read: 1 });
    expect(await run()).toMatchObject({ records_read: 0 });
    expect(await target.lines("events")).toEqual(await source.lines("events"));
  });

  test("without a primary key a table that is rewritten for a column's sake does not come a second time", async () => {
    await source.query(
      "CREATE TABLE rewritten (n int, at int); INSERT INTO rewritten SELECT i, i FROM generate_series(1, 3) i",
    );
    const run = () => sync(ends("rewritten"), { mode: "incremental", cursor_field: "at" });
    expect(await run()).toMatchObject({ error: null, records_synced: 3 });
    await source.query("INSERT INTO rewritten VALUES (4, 4)");
    await source.query("ALTER TABLE rewritten ALTER n TYPE bigint");
    await source.query("INSERT INTO rewritten VALUES (5, 1)");
    expect(await run()).toMatchObject({ error: null, records_synced: 2 });
    await source.query("ALTER TABLE rewritten ADD id bigserial");
    expect(await run()).toMatchObject({ error: null, records_synced: 0 });
    // A migration's second statement leaves its own mark on the column.
    await source.query("ALTER TABLE rewritten ALTER at TYPE bigint");
    await source.query("ALTER TABLE rewritten ALTER at SET NOT NULL");
    expect(await run()).toMatchObject({ error: null, records_synced: 0 });
    await source.query("ALTER TABLE rewritten ADD token uuid DEFAULT gen_random_uuid()");
    await source.query("ALTER TABLE rewritten ALTER token DROP DEFAULT");
    expect(await run()).toMatchObject({ error: null, records_synced: 0 });
    expect(await target.lines("rewritten", "n, at")).toEqual(["(1,1)", "(2,2)", "(3,3)", "(4,4)", "(5,1)"]);
    // Who fills it anew brings new rows, whoever alters it then.
    await source.query("BEGIN; TRUNCATE rewritten; INSERT INTO rewritten (n, at) VALUES (6, 1); COMMIT");
    await source.query("ALTER TABLE rewritten ALTER n SET DEFAULT 0");
    expect(await run()).toMatchObject({ error: null, records_synced: 1 });
  });

  test("without a primary key rows of a slow writer are found though it altered the table too", async () => {
    await source.query("CREATE TABLE slow_migration (at int); INSERT INTO slow_migration VALUES (2)");
    const run = () => sync(ends("slow_migration"), { mode: "incremental", cursor_field: "at" });
    expect(await run()).toMatchObject({ error: null, records_synced: 1 });
    await source.query(
      "BEGIN; INSERT INTO slow_migration VALUES (1); ALTER TABLE slow_migration ADD COLUMN note text; COMMIT",
    );
    expect(await run()).toMatchObject({ error: null, records_synced: 1 });
    expect(await target.lines("slow_migration", "at")).toEqual(["(1)", "(2)"]);
  });

  test("the destination numbers its rows by itself, in a merge and in a run that brings a column too", async () => {
    await source.query("CREATE TABLE numbered (at int PRIMARY KEY); INSERT INTO numbered VALUES (1)");
    for (const key of [[], ["at"]]) {
      await target.query(
        `DROP TABLE IF EXISTS numbered; CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY, at int ${key.length > 0 ? "PRIMARY KEY" : ""})`,
      );
      const run = () =>
        sync(ends("numbered"), {
          mode: "incremental",
          cursor_field: "at",
          primary_key: key,
          sync_id: `n${key.length}`,
        });
      expect(await run()).toMatchObject({ error: null, records_synced: 1 });
      await source.query("ALTER TABLE numbered ADD COLUMN note text; INSERT INTO numbered VALUES (2, 'b')");
      expect(await run()).toMatchObject({ error: null, records_rejected: 0 });
      expect(await target.lines("numbered", "at, note")).toEqual(["(1,)", "(2,b)"]);
      await source.query("ALTER TABLE numbered DROP note; DELETE FROM numbered WHERE at = 2");
    }
  });

  test("deleted rows are marked, removed or left, and come back when they come back", async () => {
    for (const deletes of ["soft", "hard", "ignore"] as const) {
      await source.query(
        `CREATE TABLE gone_${deletes} (id int PRIMARY KEY, v int); INSERT INTO gone_${deletes} VALUES (1, 1), (2, 1), (3, 1)`,
      );
      const run = () => sync(ends(`gone_${deletes}`), { mode: "incremental", cursor_field: "v", deletes });
      expect(await run()).toMatchObject({ status: "completed" });
      await source.query(`DELETE FROM gone_${deletes} WHERE id = 2`);
      expect((await run()).error).toBeNull();
      const rows = await target.lines(`gone_${deletes}`, "id, v");
      expect(rows).toEqual(deletes === "hard" ? ["(1,1)", "(3,1)"] : ["(1,1)", "(2,1)", "(3,1)"]);
      if (deletes !== "soft") continue;
      const marked = () => target.query("SELECT id FROM gone_soft WHERE _magic_deleted_at IS NOT NULL");
      expect(await marked()).toEqual([{ id: "2" }]);
      await source.query("INSERT INTO gone_soft VALUES (2, 2)");
      await run();
      expect(await marked()).toEqual([]);
    }
  });

  test("cdc brings every insert, update and deletion without a cursor, a late commit too, and needs a table with a key", async () => {
    await source.query(
      `CREATE TABLE feed (id int PRIMARY KEY, n int UNIQUE, long text); CREATE TABLE keyless (id int); CREATE VIEW feed_view AS SELECT * FROM feed;
       INSERT INTO feed SELECT i, i, repeat(md5(i::text), 500) FROM generate_series(1, 50) i`,
    );
    const lite = join(temporaryFolder(), "feed.sqlite");
    const inLite = () => {
      const db = new DatabaseSync(lite, { readOnly: true });
      const rows = db.prepare("SELECT '(' || id || ',' || n || ',' || long || ')' AS line FROM feed").all();
      db.close();
      return rows.map(({ line }) => String(line)).sort();
    };
    const follow = async (read: number) => {
      for (const [url, rows] of [[to, () => target.lines("feed")] as const, [lite, inLite] as const]) {
        expect(await sync({ ...ends("feed"), to: url }, { mode: "cdc" })).toMatchObject({
          error: null,
          records_read: read,
        });
        expect(await rows()).toEqual(await source.lines("feed"));
      }
    };
    await follow(50);
    const late = await connect(from);
    await late.query("BEGIN; UPDATE feed SET n = -n WHERE id = 3");
    // A key that becomes another, a value that two rows hand on, a row that comes and goes, a long one that is not touched.
    await source.query(
      "UPDATE feed SET id = 100 WHERE id = 1; DELETE FROM feed WHERE id = 2; UPDATE feed SET n = 2 WHERE id = 100; INSERT INTO feed VALUES (101, 101); DELETE FROM feed WHERE id = 101; UPDATE feed SET n = 1004 WHERE id = 4",
    );
    await follow(2);
    await late.query("COMMIT");
    await late.end();
    await follow(1);
    await source.query("TRUNCATE feed; INSERT INTO feed VALUES (1, 1, 'x')");
    await follow(1);
    await source.query("INSERT INTO feed VALUES (2, 2, 'y')");
    // Behind the address another server may be by now, as after a restore.
    await target.query(
      `UPDATE _magic_state SET state = jsonb_set(state, '{horizon,system}', '"1/x"') WHERE stream = 'feed'`,
    );
    await source.query("UPDATE feed SET long = 'z' WHERE id = 1; INSERT INTO feed VALUES (20000, 3, 'z')");
    expect(await sync(ends("feed"), { mode: "cdc" })).toMatchObject({ error: null, records_read: 3 });
    expect(await target.lines("feed")).toEqual(await source.lines("feed"));
    // The key's columns come in another order.
    await source.query("CREATE TABLE turned (a text, b int, PRIMARY KEY (a, b)); INSERT INTO turned VALUES ('x', 1)");
    expect(await sync(ends("turned"), { mode: "cdc" })).toMatchObject({ error: null, records_read: 1 });
    await source.query("ALTER TABLE turned DROP CONSTRAINT turned_pkey, ADD PRIMARY KEY (b, a)");
    await source.query("INSERT INTO turned VALUES ('y', 0)");
    expect(await sync(ends("turned"), { mode: "cdc" })).toMatchObject({ error: null, records_read: 1 });
    const lines = join(temporaryFolder(), "feed.jsonl");
    const kept = { mode: "cdc", state_file: `${lines}.state` } as const;
    const told = await sync({ ...ends("feed"), to: lines }, kept);
    expect(told).toMatchObject({ records_read: 3, warnings: [{ code: "deletions_not_followed" }] });
    expect(await sync(ends("feed"), { mode: "cdc", deletes: "soft" })).toMatchObject({ records_read: 0 });
    expect((await sync(ends("keyless"), { mode: "cdc" })).error).toMatchObject({ code: "validation_failed" });
    const view = await sync(ends("feed_view"), { mode: "cdc", primary_key: ["id"] });
    expect(view.error).toMatchObject({ code: "validation_failed", message: expect.stringContaining("Mode cdc") });
    expect(await strays()).toEqual([]);
  });

  test("keys are compared where rows may have gone, not whenever something else happened in the cluster", async () => {
    await source.query(
      "CREATE TABLE quiet (id int PRIMARY KEY, n int); INSERT INTO quiet VALUES (1, 1), (2, 2), (3, 3)",
    );
    let compared = 0;
    const ports = (spec: SyncSpec) => ({
      openSource: async () => {
        const opened = await openSource(spec.source);
        const open = async (request: ReadRequest) => {
          const stream = await opened.open(request);
          const keys = () => {
            compared++;
            return stream.keys?.() ?? [];
          };
          return { ...stream, keys } as SourceStream;
        };
        return { ...opened, open };
      },
      openDestination: async () => openDestination(spec.destination),
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    const run = async (more: Partial<SyncSpec> = {}) => {
      compared = 0;
      const spec = specOf(ends("quiet"), { mode: "cdc", ...more });
      expect(await runSync(spec, ports(spec))).toMatchObject({ error: null });
      expect(await target.lines("quiet", "id, n")).toEqual(await source.lines("quiet"));
      return compared;
    };
    await run();
    await source.query("CREATE TABLE noise (id int)");
    expect([await run(), await run()]).toEqual([0, 0]);
    await source.query("DELETE FROM quiet WHERE id = 1");
    expect([await run(), await run()]).toEqual([1, 0]);
    await source.query("DELETE FROM quiet WHERE id = 2; INSERT INTO quiet VALUES (4, 4)");
    expect([await run(), await run()]).toEqual([1, 0]);
    await target.query("INSERT INTO quiet VALUES (5, 5)");
    expect([await run(), await run()]).toEqual([1, 0]);
    expect([await run({ deletes: "soft" }), await run({ deletes: "soft" })]).toEqual([1, 0]);
  });

  test("a sync that ignored deletions so far and is cdc from now on follows those of before, though nothing happens", async () => {
    await source.query("CREATE TABLE turn (id int PRIMARY KEY); INSERT INTO turn VALUES (1), (2)");
    const to = join(temporaryFolder(), "turn.sqlite");
    const run = (mode: SyncMode) => sync({ ...ends("turn"), to }, { mode, cursor_field: "id" });
    await run("incremental");
    await source.query("DELETE FROM turn WHERE id = 1");
    expect((await run("incremental")).proof).toMatchObject({ source_count: 1, destination_count: 2 });
    expect((await run("cdc")).proof).toMatchObject({ source_count: 1, destination_count: 1 });
  });

  test("a full refresh with soft deletes keeps and marks what has gone", async () => {
    await source.query("CREATE TABLE faded (id int PRIMARY KEY, t text); INSERT INTO faded VALUES (1, 'a'), (2, 'b')");
    await sync(ends("faded"), { deletes: "soft" });
    await source.query("DELETE FROM faded WHERE id = 1");
    expect((await sync(ends("faded"), { deletes: "soft" })).error).toBeNull();
    expect(await target.lines("faded", "id, _magic_deleted_at IS NOT NULL")).toEqual(["(1,t)", "(2,f)"]);
    // By another key the rows there are no records that were refused: they cannot be told apart, or have no such column.
    await source.query("INSERT INTO faded VALUES (3, 'c'); ALTER TABLE faded DROP CONSTRAINT faded_pkey, ADD n int");
    await source.query("UPDATE faded SET n = id; ALTER TABLE faded ADD PRIMARY KEY (n)");
    const refused = { error: { code: "schema_drift", message: expect.stringContaining("--deletes hard") } };
    expect(await sync(ends("faded"), { deletes: "soft" })).toMatchObject(refused);
    await target.query("ALTER TABLE faded ADD n int");
    expect(await sync(ends("faded"), { deletes: "soft" })).toMatchObject(refused);
    await target.query("UPDATE faded SET n = id");
    expect((await sync(ends("faded"), { deletes: "soft" })).error).toBeNull();
    expect(await target.lines("faded", "n, _magic_deleted_at IS NOT NULL")).toEqual(["(1,t)", "(2,f)", "(3,f)"]);
  });

  test("new columns are added, wider types widened, anything else stops the run and changes nothing", async () => {
    await source.query(
      "CREATE TABLE drifting (id int PRIMARY KEY, n int, s varchar(5), at int); INSERT INTO drifting VALUES (1, 1, 'a', 1)",
    );
    for (const mode of ["incremental", "full_refresh"] as const) {
      const table = `drifting_${mode}`;
      const run = () => sync(ends("drifting", table), { mode, cursor_field: "at" });
      expect((await run()).error).toBeNull();
      await source.query(
        "ALTER TABLE drifting ADD COLUMN extra text DEFAULT 'e', ALTER COLUMN n TYPE bigint, ALTER COLUMN s TYPE text; INSERT INTO drifting VALUES (2, 5000000000, 'longer than five', 2)",
      );
      const widened = await run();
      expect(widened.error).toBeNull();
      expect(await target.lines(table, "n, s")).toContain('(5000000000,"longer than five")');
      await source.query("ALTER TABLE drifting ALTER COLUMN n TYPE text");
      expect(await run()).toMatchObject({
        status: "failed",
        error: { code: "schema_drift", message: expect.stringContaining('"n"') },
      });
      await source.query("ALTER TABLE drifting RENAME COLUMN extra TO other");
      expect(await run()).toMatchObject({ status: "failed", error: { code: "schema_drift" } });
      expect(await target.query(`SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: "2" }]);
      expect(await strays()).toEqual([]);
      await source.query(
        "DROP TABLE drifting; CREATE TABLE drifting (id int PRIMARY KEY, n int, s varchar(5), at int); INSERT INTO drifting VALUES (1, 1, 'a', 1)",
      );
    }
  });

  test("a column that was dropped and made anew, and two that exchanged their names, are read anew", async () => {
    await source.query(
      "CREATE TABLE named (id int PRIMARY KEY, a text, b text); INSERT INTO named VALUES (1, 'a', 'b')",
    );
    const run = () => sync(ends("named"), { mode: "incremental", cursor_field: "id" });
    expect((await run()).error).toBeNull();
    for (const [change, row] of [
      ["RENAME a TO c; ALTER TABLE named RENAME b TO a; ALTER TABLE named RENAME c TO b", "(1,b,a)"],
      ["DROP a, ADD a text DEFAULT 'new'", "(1,new,a)"],
    ] as const) {
      await source.query(`ALTER TABLE named ${change}`);
      expect(await run()).toMatchObject({ error: null, records_synced: 1 });
      expect(await target.lines("named", "id, a, b")).toEqual([row]);
      expect(await run()).toMatchObject({ error: null, records_synced: 0 });
    }
  });

  test("rows whose enum's label is renamed, or whose composite gets a member, are read anew; a label that is added reads nothing", async () => {
    await source.query(`CREATE TYPE state AS ENUM ('new', 'old'); CREATE DOMAIN kept_state AS state; CREATE TYPE pair AS (n int, s state);
      CREATE TABLE spelt (id int PRIMARY KEY, s state, d kept_state, a state[], p pair); INSERT INTO spelt VALUES (1, 'new', NULL, NULL, NULL), (2, 'old', 'old', '{old}', '(1,old)')`);
    const run = () => sync(ends("spelt"), { mode: "incremental", cursor_field: "id" });
    expect(await run()).toMatchObject({ error: null, records_synced: 2 });
    for (const [change, records_synced] of [
      ["ALTER TYPE state ADD VALUE 'older'", 0],
      ["ALTER TYPE state RENAME VALUE 'old' TO 'aged'", 2],
      ["ALTER TYPE pair ADD ATTRIBUTE more int", 2],
      ["ALTER TYPE pair RENAME TO couple", 0],
    ] as const) {
      await source.query(change);
      expect(await run()).toMatchObject({ error: null, records_synced });
      expect(await target.lines("spelt")).toEqual(await source.lines("spelt"));
    }
    expect(await target.lines("spelt", "s, d, a")).toEqual(["(aged,aged,{aged})", "(new,,)"]);
  });

  test("a view with another definition, or over one, is read anew by its key", async () => {
    await source.query(`CREATE TABLE below (id int PRIMARY KEY); INSERT INTO below SELECT generate_series(1, 20000);
      CREATE VIEW lower_view AS SELECT id, 'a' AS t FROM below; CREATE VIEW upper_view AS SELECT id, t FROM lower_view`);
    const run = () =>
      sync(ends("upper_view"), { mode: "incremental", cursor_field: "id", primary_key: ["id"], sync_id: "upper" });
    expect((await run()).error).toBeNull();
    for (const [change, t] of [
      ["lower_view AS SELECT id, 'b' AS t FROM below", "b"],
      ["upper_view AS SELECT id, t || 'c' AS t FROM lower_view", "bc"],
    ] as const) {
      await source.query(`CREATE OR REPLACE VIEW ${change}`);
      expect(await run()).toMatchObject({ error: null, records_synced: 20_000 });
      expect(await target.lines("upper_view", "DISTINCT t")).toEqual([`(${t})`]);
      // The look-back.
      expect(await run()).toMatchObject({ error: null, records_synced: 10_001 });
    }
  });

  test("texts that only a collation takes for equal are proven by their bytes, whatever the collation at either end", async () => {
    await source.query(
      `CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
       CREATE TABLE folded (k text COLLATE no_case PRIMARY KEY, v varchar(9) COLLATE no_case, a text[] COLLATE no_case);
       INSERT INTO folded VALUES ('a', 'X', '{y,NULL}'), ('B', NULL, NULL)`,
    );
    const proven = { error: null, records_synced: 2, proof: { checksum: expect.any(String) } };
    expect(await sync({ from, object: "folded", to, table: "folded" })).toMatchObject(proven);
    expect(await target.lines("folded")).toEqual(await source.lines("folded"));
  });

  test("a role that may write a table of another's exchanges its rows, and the table stays the other's", async () => {
    await source.query("CREATE TABLE lent (id int PRIMARY KEY, t text); INSERT INTO lent VALUES (1, 'a'), (2, 'b')");
    await target.query(
      `CREATE SCHEMA theirs; CREATE TABLE theirs.lent (id int PRIMARY KEY, t text); INSERT INTO theirs.lent VALUES (1, 'old'), (9, 'gone');
       CREATE ROLE borrower LOGIN; GRANT USAGE, CREATE ON SCHEMA theirs TO borrower; GRANT SELECT, INSERT, DELETE ON theirs.lent TO borrower`,
    );
    const borrower = to.replace("//postgres@", "//borrower@");
    const outcome = await sync({ from, object: "lent", to: borrower, table: "theirs.lent" });
    expect(outcome).toMatchObject({ error: null, records_synced: 2 });
    expect(await target.lines("theirs.lent")).toEqual(["(1,a)", "(2,b)"]);
    const owners = await target.query("SELECT relowner::regrole::text AS owner FROM pg_class WHERE relname = 'lent'");
    expect(owners).toEqual([{ owner: "postgres" }]);
  });

  test("a real is the double that its text says: as a key it has not gone, and the checksums are alike", async () => {
    await source.query(
      "CREATE TABLE reals (k real PRIMARY KEY, v int, n numeric(9,2)); INSERT INTO reals VALUES (0.1, 1, 1)",
    );
    await target.query("CREATE TABLE reals (k double precision PRIMARY KEY, v int, n text)");
    for (const more of [
      { mode: "incremental", cursor_field: "v", deletes: "hard", columns: ["k", "v"] },
      { mode: "full_refresh" },
    ] as const)
      expect(await sync(ends("reals"), more)).toMatchObject({ error: null, proof: { destination_count: 1 } });
    expect(await target.lines("reals")).toEqual(["(0.1,1,1.00)"]);
  });

  test("types whose numbers differ from server to server arrive in a table with the same types", async () => {
    const types =
      "CREATE TYPE mood2 AS ENUM ('a', 'b'); CREATE TABLE moods (id int PRIMARY KEY, m mood2, q tsquery, x xml)";
    await target.query(`CREATE TYPE elsewhere AS ENUM ('x'); ${types}`);
    await source.query(
      `${types}; INSERT INTO moods VALUES (1, 'a', '', '<?xml version="1.0"?><a/>'), (2, 'b', 'a & b', '')`,
    );
    expect(await sync(ends("moods"))).toMatchObject({ status: "completed", error: null, records_synced: 2 });
    expect(await target.lines("moods", "id, m, q, x::text")).toEqual(await source.lines("moods", "id, m, q, x::text"));
  });

  test("tables with serial, identity and generated columns, and tables that others refer to, are refreshed and merged into", async () => {
    const made = {
      serial: "id bigserial PRIMARY KEY, v int",
      identity: "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int",
      generated: "id bigint PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED",
      referred: "id bigint PRIMARY KEY, v int",
    };
    for (const [table, columns] of Object.entries(made)) {
      await source.query(
        `CREATE TABLE ${table} (id bigint PRIMARY KEY, v int${table === "generated" ? ", twice int" : ""}); INSERT INTO ${table} (id, v) VALUES (1, 1), (2, 2); ${table === "generated" ? "UPDATE generated SET twice = v * 2" : ""}`,
      );
      await target.query(
        `CREATE TABLE ${table} (${columns}); INSERT INTO ${table} (v) ${table === "serial" || table === "identity" ? "VALUES (7)" : "SELECT 1 WHERE false"}`,
      );
      if (table === "referred")
        await target.query(
          "INSERT INTO referred VALUES (1, 0), (9, 9); CREATE TABLE refers (id bigint REFERENCES referred ON DELETE CASCADE); INSERT INTO refers VALUES (1)",
        );
      expect(await sync(ends(table))).toMatchObject({ status: "completed", error: null, records_synced: 2 });
      expect(await target.lines(table)).toEqual(await source.lines(table));
      await source.query(
        `UPDATE ${table} SET v = 5 WHERE id = 1; ${table === "generated" ? "UPDATE generated SET twice = v * 2" : ""}`,
      );
      expect(await sync(ends(table), { mode: "incremental", cursor_field: "v" })).toMatchObject({
        status: "completed",
        error: null,
      });
      expect(await target.lines(table)).toEqual(await source.lines(table));
    }
    expect(await target.query("SELECT count(*) AS n FROM refers")).toEqual([{ n: "1" }]);
    // The sequences went on where they were, under their names.
    expect(await target.query("SELECT * FROM nextval('serial_id_seq') WHERE nextval > 1")).toHaveLength(1);
    expect(
      await target.query(
        "SELECT relname FROM pg_class WHERE relname LIKE '\\_magic\\_s%' AND relname NOT LIKE '\\_magic\\_state%'",
      ),
    ).toEqual([]);
  });

  test("an identity column that the source lacks numbers the rows of every refresh on, whether the table is replaced or refreshed in place", async () => {
    await source.query("CREATE TABLE tickets (id int PRIMARY KEY); INSERT INTO tickets SELECT generate_series(1, 3)");
    for (const more of ["", "CREATE VIEW looks AS SELECT id FROM tickets"]) {
      await target.query(`DROP TABLE IF EXISTS tickets CASCADE;
        CREATE TABLE tickets (id int PRIMARY KEY, n smallint GENERATED ALWAYS AS IDENTITY UNIQUE); ${more};
        INSERT INTO tickets SELECT generate_series(101, 105)`);
      expect(await sync(ends("tickets")), more).toMatchObject({ error: null, records_synced: 3 });
      expect(await target.query("SELECT max(n)::text FROM tickets"), more).toEqual([{ max: "8" }]);
      expect(await target.query("INSERT INTO tickets VALUES (4) RETURNING n::text"), more).toEqual([{ n: "9" }]);
    }
    // A trigger that fills a column in is asked before the column is called empty.
    await target.query(`CREATE TABLE stamped (id int PRIMARY KEY, at text NOT NULL);
      CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.at := ''now''; RETURN new; END';
      CREATE TRIGGER stamps BEFORE INSERT ON stamped FOR EACH ROW EXECUTE FUNCTION stamp()`);
    expect(await sync({ ...ends("tickets"), table: "stamped" })).toMatchObject({ error: null, records_synced: 3 });
    expect(await target.lines("stamped")).toEqual(["(1,now)", "(2,now)", "(3,now)"]);
  });

  test("tables that take no ON CONFLICT are merged into: with rules, with a deferrable constraint beside the key's index, with a key WITHOUT OVERLAPS", async () => {
    const [about] = await target.query("SHOW server_version_num");
    if (Number(about?.["server_version_num"]) >= 180_000) {
      const made = "CREATE TABLE stays (rooms int4range, days int4range, v int";
      await source.query(`${made}); INSERT INTO stays VALUES ('[1,2)', '[1,3)', 2), ('[1,2)', '[3,9)', 3)`);
      await target.query(
        `${made}, PRIMARY KEY (rooms, days WITHOUT OVERLAPS)); INSERT INTO stays VALUES ('[1,2)', '[1,3)', 1), ('[1,2)', '[4,5)', 1)`,
      );
      const followed = { mode: "incremental", cursor_field: "v", deletes: "hard" } as const;
      expect(await sync(ends("stays"), { ...followed, primary_key: ["rooms", "days"] })).toMatchObject({
        error: null,
        records_rejected: 0,
      });
      expect(await target.lines("stays")).toEqual(['("[1,2)","[1,3)",2)', '("[1,2)","[3,9)",3)']);
    }
    await source.query("CREATE TABLE plain_rows (id int, v int); INSERT INTO plain_rows VALUES (1, 1), (2, 2)");
    const keyed = { mode: "incremental", cursor_field: "v", primary_key: ["id"] } as const;
    for (const [table, more] of [
      ["ruled", "CREATE RULE r AS ON INSERT TO ruled DO ALSO NOTIFY ruled"],
      ["deferring", "ALTER TABLE deferring ADD UNIQUE (id) DEFERRABLE"],
    ] as const) {
      await target.query(
        `CREATE TABLE ${table} (id int PRIMARY KEY, v int, own int); INSERT INTO ${table} VALUES (1, 0, 7); ${more}`,
      );
      expect((await sync(ends("plain_rows", table), keyed)).error, table).toBeNull();
      expect(await target.lines(table)).toEqual(["(1,1,7)", "(2,2,)"]);
    }
  });

  test("rows of other tables stay where the sync has no key for those that they refer to, or the run is refused", async () => {
    await source.query("CREATE TABLE parents (id int, v text); INSERT INTO parents VALUES (1, 'older'), (1, 'new')");
    await target.query(`CREATE TABLE parents (id serial PRIMARY KEY, v text); INSERT INTO parents VALUES (1, 'old'), (2, 'gone');
      CREATE TABLE children (id int REFERENCES parents ON DELETE CASCADE); INSERT INTO children VALUES (1), (2)`);
    expect((await sync(ends("parents"), { columns: ["v"] })).error).toMatchObject({ code: "destination_refused" });
    expect(await target.lines("children")).toEqual(["(1)", "(2)"]);
    expect(await sync(ends("parents"))).toMatchObject({ error: null, records_synced: 1, rejects: [{ key: "1" }] });
    expect([await target.lines("parents"), await target.lines("children")]).toEqual([["(1,new)"], ["(1)"]]);
    await target.query(
      `ALTER TABLE children DROP CONSTRAINT children_id_fkey, ADD FOREIGN KEY (id) REFERENCES parents`,
    );
    await source.query("UPDATE parents SET id = 2");
    const gone = { mode: "incremental", cursor_field: "id", primary_key: ["id"], deletes: "hard" } as const;
    expect((await sync(ends("parents"), gone)).error).toMatchObject({
      code: "destination_refused",
      message: expect.stringContaining("still refer to"),
    });
  });

  test("rows that refer to rows of their own table go with them where no key is brought", async () => {
    await source.query("CREATE TABLE tree (parent int, v text); INSERT INTO tree VALUES (NULL, 'new')");
    await target.query(
      "CREATE TABLE tree (id serial PRIMARY KEY, parent int REFERENCES tree ON DELETE CASCADE, v text); INSERT INTO tree (parent, v) VALUES (NULL, 'old'), (1, 'older')",
    );
    expect(await sync(ends("tree"))).toMatchObject({ error: null, records_synced: 1 });
    expect(await target.lines("tree", "v")).toEqual(["(new)"]);
  });

  test("a key is the table's own in a database to whose locale a is less than B", async () => {
    await source.query(
      'CREATE TABLE capitals ("Id" int, account int, v text, PRIMARY KEY ("Id", account)); INSERT INTO capitals VALUES (1, 2, \'new\')',
    );
    await target.query("CREATE DATABASE english LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0");
    const english = new URL(to);
    english.pathname = "/english";
    const there = await connect(english.href);
    await there.query(`CREATE TABLE capitals ("Id" int, account int, v text, PRIMARY KEY ("Id", account)); INSERT INTO capitals VALUES (1, 2, 'old');
      CREATE TABLE refer (id int, account int, FOREIGN KEY (id, account) REFERENCES capitals ON DELETE CASCADE); INSERT INTO refer VALUES (1, 2)`);
    expect(await sync({ ...ends("capitals"), to: english.href })).toMatchObject({ error: null, records_synced: 1 });
    expect([await there.lines("capitals"), await there.lines("refer")]).toEqual([["(1,2,new)"], ["(1,2)"]]);
    await there.end();
  });

  test("the table's key may name its columns in another order", async () => {
    await source.query(
      "CREATE TABLE pairs (a int, b int, v text, PRIMARY KEY (b, a)); INSERT INTO pairs VALUES (1, 2, 'new')",
    );
    await target.query(`CREATE TABLE pairs (a int, b int, v text, PRIMARY KEY (a, b)); INSERT INTO pairs VALUES (1, 2, 'old');
      CREATE TABLE paired (a int, b int, FOREIGN KEY (a, b) REFERENCES pairs); INSERT INTO paired VALUES (1, 2)`);
    expect((await sync(ends("pairs"))).error).toBeNull();
    expect(await target.lines("pairs")).toEqual(["(1,2,new)"]);
  });

  test("what another unique column, a foreign key or the partitions refuse is quarantined; values that two rows exchanged are not", async () => {
    await source.query(
      "CREATE TABLE people (id int PRIMARY KEY, email text, n int); INSERT INTO people VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1), (4, 'c', 1), (5, 'e', 1)",
    );
    await target.query("CREATE TABLE people (id int PRIMARY KEY, email text UNIQUE, n int)");
    const incremental = () => sync(ends("people"), { mode: "incremental", cursor_field: "n" });
    expect(await incremental()).toMatchObject({
      status: "completed",
      records_synced: 4,
      records_rejected: 1,
      rejects: [{ key: "4", column: "email" }],
    });
    await source.query(
      "DELETE FROM people WHERE id = 4; UPDATE people SET email = CASE id WHEN 1 THEN 'b' ELSE 'a' END, n = 2 WHERE id < 3",
    );
    expect(await incremental()).toMatchObject({ status: "completed", records_synced: 2, records_rejected: 0 });
    expect(await target.lines("people")).toEqual(await source.lines("people"));
    await source.query("INSERT INTO people VALUES (6, 'e', 3)");
    const refreshed = await sync(ends("people"));
    expect(refreshed).toMatchObject({ status: "completed", records_synced: 4, records_rejected: 1 });
    const reason = "duplicate key value violates unique constraint";
    expect(refreshed.rejects).toEqual([{ key: "6", column: "email", reason }]);
    const file = join(temporaryFolder(), "people.jsonl");
    writeFileSync(file, '{"id":7,"email":"\\u0000","n":1}\n');
    const outcome = await sync({ ...ends("people"), from: file }, { mode: "incremental", cursor_field: "id" });
    expect(outcome.rejects).toMatchObject([{ column: "email", reason: expect.stringContaining("0x00") }]);
  });

  test("a record for which a trigger raises an exception costs that record alone; where it keeps rows that are to go, the run is refused", async () => {
    await source.query(
      "CREATE TABLE raised (id int PRIMARY KEY, v int); INSERT INTO raised SELECT i, i FROM generate_series(1, 50) i",
    );
    await target.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'DELETE' OR NEW.id % 20 = 7 THEN RAISE EXCEPTION 'not with us'; END IF; RETURN NEW; END $$;
      CREATE TABLE raised (id int PRIMARY KEY, v int); CREATE TABLE raised_late (id int PRIMARY KEY, v int); CREATE TABLE raised_keyless (id int, v int);
      CREATE TRIGGER t BEFORE INSERT OR UPDATE ON raised FOR EACH ROW EXECUTE FUNCTION refuse();
      CREATE CONSTRAINT TRIGGER t AFTER INSERT ON raised_late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
      CREATE TRIGGER t BEFORE INSERT ON raised_keyless FOR EACH ROW EXECUTE FUNCTION refuse()`);
    const incremental = { mode: "incremental", cursor_field: "v" } as const;
    await source.query("CREATE VIEW raised_keyless AS SELECT * FROM raised");
    for (const [object, table, more] of [
      ["raised", "raised", incremental],
      ["raised", "raised", {}],
      ["raised", "raised_late", {}],
      ["raised_keyless", "raised_keyless", incremental],
    ] as const) {
      const outcome = await sync({ from, object, to, table }, more);
      expect([table, more, outcome]).toMatchObject([
        table,
        more,
        { error: null, records_synced: 47, records_rejected: 3, rejects: Array(3).fill({ reason: "not with us" }) },
      ]);
    }
    await target.query("CREATE TRIGGER kept BEFORE DELETE ON raised FOR EACH ROW EXECUTE FUNCTION refuse()");
    await source.query("DELETE FROM raised WHERE id > 40");
    const kept = { code: "destination_refused", message: "A trigger keeps rows that are to go: not with us" };
    for (const more of [{ ...incremental, deletes: "hard" }, {}] as const)
      expect((await sync({ from, object: "raised", to, table: "raised" }, more)).error).toEqual(kept);
    await source.query(
      "CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' ; END $$; CREATE VIEW failing AS SELECT fails() AS n",
    );
    expect((await sync({ from, object: "failing", to, table: "failing" })).error).toMatchObject({
      code: "source_failed",
    });
  });

  test("a key or a row that is too large for a page of PostgreSQL costs that row alone", async () => {
    const names = Array.from({ length: 1020 }, (_, at) => `c${at}`);
    await source.query(
      `CREATE TABLE large_keys AS SELECT 1 AS n, 'k' AS k UNION ALL SELECT 2, (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) i);
       CREATE TABLE large_rows (id int PRIMARY KEY, ${names.map((name) => `${name} smallint`).join(", ")}); INSERT INTO large_rows (id) VALUES (1); INSERT INTO large_rows VALUES (2, ${names.map(() => 1).join(", ")})`,
    );
    await target.query(
      `CREATE TABLE large_rows (id int PRIMARY KEY, ${names.map((name) => `${name} bigint`).join(", ")})`,
    );
    for (const mode of ["full_refresh", "incremental"] as const) {
      const table = `large_${mode}`;
      for (let run = 0; run < 2; run++) {
        const outcome = await sync(
          { from, object: "large_keys", to, table },
          { mode, cursor_field: "n", primary_key: ["k"] },
        );
        expect(outcome).toMatchObject({ status: "completed", error: null });
        if (run === 0)
          expect(outcome.rejects.map(({ reason }) => reason)).toEqual([expect.stringContaining("index row size")]);
        expect(await target.lines(table)).toEqual(["(1,k)"]);
      }
    }
    expect(await sync(ends("large_rows"))).toMatchObject({
      records_synced: 1,
      rejects: [{ key: "2", reason: expect.stringContaining("row is too big") }],
    });
  });

  test("what a deferred constraint or a computed column would refuse or change is quarantined too", async () => {
    await source.query(
      "CREATE TABLE late (id int PRIMARY KEY, v int, s int); INSERT INTO late VALUES (1, 1, 2), (2, 1, 2), (3, 3, 99), (4, 4, 8)",
    );
    for (const mode of ["full_refresh", "incremental"] as const) {
      const table = `late_${mode}`;
      await target.query(
        `CREATE TABLE ${table} (id int PRIMARY KEY, v int UNIQUE DEFERRABLE INITIALLY DEFERRED, s int GENERATED ALWAYS AS (v * 2) STORED)`,
      );
      const outcome = await sync({ from, object: "late", to, table }, { mode, cursor_field: "id" });
      expect(outcome.error).toBeNull();
      expect(outcome.rejects.map(({ key }) => key).sort()).toEqual(["2", "3"]);
      expect(await target.lines(table)).toEqual(["(1,1,2)", "(4,4,8)"]);
    }
    await target.query("CREATE TABLE late_swapped (id int PRIMARY KEY, v int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    const swapped = await sync({ from, object: "late", to, table: "late_swapped" }, { columns: ["id", "v"] });
    expect(swapped).toMatchObject({ status: "completed", rejects: [{ key: "2" }] });
  });

  test("columns are chosen and renamed", async () => {
    const outcome = await sync(ends("proven", "chosen"), {
      columns: ["t", "id"],
      mapping: { t: "title" },
      primary_key: ["id"],
    });
    expect(outcome.error).toBeNull();
    expect((await target.lines("chosen", "title, id"))[0]).toBe("(x1,1)");
    expect(
      await target.query(
        "SELECT column_name AS c FROM information_schema.columns WHERE table_name = 'chosen' ORDER BY ordinal_position",
      ),
    ).toEqual([{ c: "title" }, { c: "id" }]);
  });

  test("a role that may read some columns only goes on by the cursor", async () => {
    await source.query(
      "CREATE TABLE partly (id int PRIMARY KEY, pay int, at int); INSERT INTO partly VALUES (1, 2, 3); CREATE ROLE partial LOGIN; GRANT SELECT (id, at) ON partly TO partial",
    );
    const run = () =>
      sync(
        { ...ends("partly"), from: from.replace("postgres@", "partial@") },
        { mode: "incremental", cursor_field: "at", columns: ["id", "at"] },
      );
    expect((await run()).error).toBeNull();
    await source.query("UPDATE partly SET at = 4; INSERT INTO partly VALUES (2, 2, 2)");
    expect((await run()).error).toBeNull();
    expect(await target.lines("partly")).toEqual(["(1,4)", "(2,2)"]);
  });

  test("row-level security that hides rows is reported", async () => {
    await source.query(
      "CREATE TABLE hidden (id int PRIMARY KEY, who text); INSERT INTO hidden VALUES (1, 'a'), (2, 'b'); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON hidden USING (who = 'a'); CREATE ROLE limited LOGIN; GRANT SELECT ON hidden TO limited",
    );
    const outcome = await sync({ ...ends("hidden"), from: from.replace("postgres@", "limited@") });
    expect(outcome).toMatchObject({
      status: "completed",
      records_read: 1,
      warnings: [{ code: "row_level_security", message: expect.stringContaining("Row-level security") }],
    });
    const warned = { status: "completed", warnings: [{ code: "row_level_security" }] };
    // Behind views that read with their reader's rights; one that reads with its owner's shows all that it is.
    await source.query(
      "CREATE VIEW inner_view WITH (security_invoker) AS SELECT * FROM hidden; CREATE VIEW outer_view WITH (security_invoker = on) AS SELECT * FROM inner_view; CREATE VIEW owners AS SELECT * FROM hidden; GRANT SELECT ON inner_view, outer_view, owners TO limited",
    );
    const limited = (object: string) => sync({ ...ends(object), from: from.replace("postgres@", "limited@") });
    expect(await limited("outer_view")).toMatchObject({ ...warned, records_read: 1 });
    expect(await limited("owners")).toMatchObject({ status: "completed", records_read: 2, warnings: [] });
    // What is hidden at the destination stays.
    await target.query(
      "CREATE TABLE guarded (id int PRIMARY KEY, who text); INSERT INTO guarded VALUES (1, 'old'), (9, 'b'); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON guarded USING (id < 9); GRANT ALL ON guarded, _magic_state TO limited; GRANT CREATE ON SCHEMA public TO limited",
    );
    const guarded = await sync({ ...ends("hidden", "guarded"), to: to.replace("postgres@", "limited@") });
    expect(guarded).toMatchObject({ ...warned, records_read: 2 });
    expect(await target.lines("guarded")).toEqual(["(1,a)", "(2,b)", "(9,b)"]);
  });

  test("what cannot work says what to do, and leaves nothing behind", async () => {
    const folder = temporaryFolder();
    const loop = join(folder, "loop.csv");
    symlinkSync(loop, loop);
    const cases: [Promise<Awaited<ReturnType<typeof sync>>>, string][] = [
      [sync(ends("nowhere")), "object_not_found"],
      [sync({ ...ends("proven"), from: `${from}`.replace(/\/test_\d+\?/, "/nothing?") }), "object_not_found"],
      [sync({ ...ends("proven"), from: "postgres://postgres@127.0.0.1:1/x" }), "unreachable"],
      [sync({ ...ends("proven"), to: to.replace("postgres@", "limited@") }), "permission_denied"],
      [sync({ ...ends("proven"), from: from.replace("postgres@", "limited@") }), "permission_denied"],
      [sync({ ...ends("proven"), to: `${to}&options=-c%20default_transaction_read_only%3Don` }), "destination_refused"],
      [sync({ ...ends("proven"), from: "proven.csv" }, { mode: "cdc" }), "not_supported"],
      [sync(ends("proven"), { mode: "incremental" }), "validation_failed"],
      [sync(ends("proven"), { columns: ["id", "nope"] }), "object_not_found"],
      [sync(ends("proven"), { columns: [] }), "validation_failed"],
      [sync(ends("proven"), { primary_key: ["id", "id"] }), "validation_failed"],
      [sync({ ...ends("proven"), to: "s3://bucket/proven.csv" }), "invalid_request"],
      [sync({ ...ends("proven"), from: folder }), "invalid_request"],
      [sync({ ...ends("proven"), to: loop }), "destination_refused"],
    ];
    for (const [run, code] of cases) {
      const outcome = await run;
      expect([outcome.status, outcome.error?.code, outcome.error?.message]).toEqual([
        "failed",
        code,
        expect.any(String),
      ]);
    }
    expect(await strays()).toEqual([]);
  });

  test("a run that is the victim of a deadlock is tried again", async () => {
    await source.query(
      "CREATE TABLE contended (id int PRIMARY KEY, n int); INSERT INTO contended VALUES (1, 1), (2, 1)",
    );
    const run = () => sync(ends("contended"), { mode: "incremental", cursor_field: "n" });
    expect((await run()).error).toBeNull();
    await source.query("UPDATE contended SET n = 2");
    const other = await connect(to);
    // Only the run's own backend looks for deadlocks in time.
    await other.query("SET deadlock_timeout = '1min'; BEGIN; UPDATE contended SET n = 9 WHERE id = 2");
    const outcome = run();
    const waiting = "SELECT FROM pg_locks WHERE NOT granted";
    while ((await target.query(waiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await other.query("UPDATE contended SET n = 9 WHERE id = 1");
    await other.query("COMMIT");
    expect(await outcome).toMatchObject({ status: "completed", records_synced: 2 });
    expect(await target.lines("contended")).toEqual(["(1,2)", "(2,2)"]);
    await other.end();
  });

  test("a column and a table that go between a run's look at them and its first record are made again", async () => {
    await source.query("CREATE TABLE looked_at (id int PRIMARY KEY, t text); INSERT INTO looked_at VALUES (1, 'a')");
    const more = { mode: "incremental", cursor_field: "id" } as const;
    expect((await sync(ends("looked_at"), more)).error).toBeNull();
    for (const change of ["ALTER TABLE looked_at DROP COLUMN t", "DROP TABLE looked_at"]) {
      let changes = 0;
      const spec = specOf(ends("looked_at"), { ...more, deletes: "hard" });
      const outcome = await runSync(spec, {
        openSource: async () => {
          const opened = await openSource(spec.source, []);
          const open: typeof opened.open = async (request) => {
            if (changes++ === 0) await target.query(change);
            return opened.open(request);
          };
          return { ...opened, open };
        },
        openDestination: () => openDestination(spec.destination),
        onProgress: () => {},
        signal: new AbortController().signal,
      });
      expect(outcome).toMatchObject({ error: null, status: "completed", records_read: 1 });
      expect(await target.lines("looked_at")).toEqual(["(1,a)"]);
    }
  });

  test("a run that waits for a lock is failed with what it waited for", async () => {
    const holder = await connect(from);
    await holder.query("BEGIN; LOCK TABLE proven IN ACCESS EXCLUSIVE MODE");
    const outcome = await sync(ends("proven"), { stall_timeout_s: 1 });
    expect(outcome).toMatchObject({
      status: "failed",
      error: { code: "run_stalled", message: expect.stringContaining("proven") },
    });
    await holder.query("ROLLBACK");
    await holder.end();
  });

  test("a table that somebody reads for long is not locked against others meanwhile", async () => {
    expect((await sync(ends("proven", "looked_at"))).error).toBeNull();
    const [holder, other] = [await connect(to), await connect(to)];
    await holder.query("BEGIN; SELECT FROM looked_at");
    const outcome = sync(ends("proven", "looked_at"), { stall_timeout_s: 1 });
    while ((await target.query("SELECT FROM pg_locks WHERE NOT granted")).length === 0)
      await new Promise((resolve) => setTimeout(resolve, 10));
    // Until the run has given up, which it does however many times it has asked.
    await other.query("SET lock_timeout = 700; SELECT FROM looked_at");
    expect(await outcome).toMatchObject({
      status: "failed",
      error: { code: "run_stalled", message: expect.stringContaining("lock of public.looked_at") },
    });
    await holder.query("ROLLBACK");
    await Promise.all([holder.end(), other.end()]);
  });

  test("who waits to alter the table while it is read does not keep the proof waiting behind it", async () => {
    await source.query("CREATE TABLE altered AS SELECT 1 AS n");
    const [holder, waiter] = [await connect(from), await connect(from)];
    const queued = async (n: number) => {
      const sql = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'altered'::regclass";
      while ((await source.query(sql)).length < n) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await holder.query("BEGIN; LOCK TABLE altered IN ACCESS EXCLUSIVE MODE");
    const outcome = sync(ends("altered"), { stall_timeout_s: 5 });
    await queued(1);
    const altered = waiter.query("ALTER TABLE altered SET (fillfactor = 90)");
    await queued(2);
    await holder.query("ROLLBACK");
    expect(await outcome).toMatchObject({ status: "completed" });
    await altered;
    await Promise.all([holder.end(), waiter.end()]);
  });

  test("a cancelled run ends within two seconds, and the old rows stay", async () => {
    const holder = await connect(from);
    await holder.query("BEGIN; LOCK TABLE kept IN ACCESS EXCLUSIVE MODE");
    const cancel = new AbortController();
    const started = performance.now();
    setTimeout(() => cancel.abort(), 300);
    expect(await sync(ends("kept"), {}, cancel.signal)).toMatchObject({ status: "canceled" });
    expect(performance.now() - started).toBeLessThan(within(6_000));
    await holder.query("ROLLBACK");
    await holder.end();
    expect(await target.query("SELECT count(*) AS n FROM kept")).toEqual([{ n: "5" }]);
  });
});
