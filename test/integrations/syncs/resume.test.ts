// Runs that go on where they were: what they tell in the end is of all attempts, and a state is of one cursor only.
import { appendFileSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SyncSpec } from "#contract/sync.ts";
import { openDestination } from "#daemon/integrations/connectors/open.ts";
import { runSync } from "#daemon/integrations/engine/run.ts";
import type { Batch, Source } from "#daemon/integrations/engine/source.ts";
import { listen } from "#test/listen.ts";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { connect, openPair, type Pair, specOf, sync } from "./harness.ts";

const BATCH = 60_000;
const BATCHES = 5;
const TOTAL = BATCH * BATCHES;

// Without a snapshot, as an API: its batches carry a state, so the run commits on the way. It fails before batch `dies`.
function pages(dies: number): Source {
  return {
    check: async () => {},
    discover: async () => [],
    close: async () => {},
    open: async ({ state }) => ({
      schema: { columns: [{ name: "id", type: { kind: "int", bits: 64 }, nullable: true }], primaryKey: ["id"] },
      snapshot: false,
      changed: true,
      warnings: [],
      partitions: [{ id: "all", records: null }],
      rawFormats: [],
      async *read(): AsyncGenerator<Batch> {
        for (let page = Number(state?.cursor ?? 0); page < BATCHES; page++) {
          if (page === dies) throw new Error("the source died");
          const rows = Array.from({ length: BATCH }, (_, at) => [String(page * BATCH + at)]);
          yield { rows, bytes: BATCH, state: { cursor: String(page + 1) } };
        }
      },
      endState: () => ({ cursor: String(BATCHES) }),
      close: async () => {},
    }),
  };
}

describe.skipIf(postgresMissing())("runs that go on", () => {
  const folder = folderOfFile();
  let pair: Pair;
  beforeAll(async () => {
    pair = await openPair();
  });
  afterAll(() => pair?.close());

  const attempt = (spec: SyncSpec, dies = BATCHES) =>
    runSync(spec, {
      openSource: async () => pages(dies),
      openDestination: () => openDestination(spec.destination),
      onProgress: () => {},
      signal: new AbortController().signal,
    });

  test("counts and rejects of a run are those of all its attempts, and of no other run", async () => {
    await pair.target.query("CREATE TABLE pages (id bigint PRIMARY KEY CHECK (id <> 7 AND id <> 250000))");
    const file = join(folder, "pages.sqlite");
    const lite = new DatabaseSync(file);
    lite.exec("CREATE TABLE pages (id bigint PRIMARY KEY CHECK (id <> 7 AND id <> 250000))");
    lite.close();
    for (const to of [pair.to, file]) {
      const ends = { from: "pages.jsonl", object: "pages", to, table: "pages" };
      const spec = specOf(ends, { sync_id: "sync_pages", mode: "incremental" });
      // 120,000 are committed before it dies in the fourth batch.
      const committed = { records_synced: 2 * BATCH - 1, records_rejected: 1 };
      expect(await attempt(spec, 2)).toMatchObject({ status: "failed", records_read: 2 * BATCH, ...committed });
      expect(await attempt(spec, 2)).toMatchObject({ status: "failed", records_read: 2 * BATCH, ...committed });
      const whole = { status: "completed", records_read: TOTAL, records_synced: TOTAL - 2, records_rejected: 2 };
      const rejects = [{ key: "7" }, { key: "250000" }];
      expect(await attempt(spec)).toMatchObject({ ...whole, rejects, proof: { destination_count: TOTAL - 2 } });
      // Killed between its commit and the notice of it.
      expect(await attempt(spec)).toMatchObject({ ...whole, rejects });
      expect(await attempt({ ...spec, run_id: "run_next" })).toMatchObject({ records_read: 0, records_rejected: 0 });
    }
  });

  test("a run that dies again and again within seconds of its beginning gets on", async () => {
    const ends = { from: "pages.jsonl", object: "pages", to: join(folder, "hurried.sqlite"), table: "pages" };
    const spec = specOf(ends, { mode: "incremental" });
    // A page comes half a second after the one before.
    const slow = async () => {
      const source = pages(3);
      const open: Source["open"] = async (request) => {
        const stream = await source.open(request);
        const read: typeof stream.read = async function* (partition) {
          for await (const batch of stream.read(partition)) {
            yield { ...batch, rows: batch.rows.slice(0, 1) };
            await sleep(550);
          }
        };
        return { ...stream, read };
      };
      return { ...source, open };
    };
    const outcome = await runSync(spec, {
      openSource: slow,
      openDestination: () => openDestination(spec.destination),
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    expect(outcome).toMatchObject({ status: "failed", records_read: 3, records_synced: 3 });
  });

  test("an HTTP endpoint's proof counts what all attempts of a run sent", async () => {
    const { origin, close } = await listen(
      createServer((request, response) => request.resume().on("end", () => response.end())),
    );
    const ends = { from: "pages.jsonl", object: "pages", to: origin, table: "pages" };
    const spec = specOf(ends, { mode: "incremental", cursor_field: "id", state_file: join(folder, "endpoint.json") });
    expect(await attempt(spec, 2)).toMatchObject({ status: "failed", records_synced: 2 * BATCH });
    const whole = { status: "completed", records_synced: TOTAL, proof: { destination_count: TOTAL } };
    expect(await attempt(spec)).toMatchObject(whole);
    expect(await attempt({ ...spec, run_id: "run_next" })).toMatchObject({ proof: { destination_count: 0 } });
    expect(await attempt({ ...spec, reset: true })).toMatchObject(whole);
    await close();
  });

  test("rows that somebody has taken out of the table do not come again by themselves, and the run says so", async () => {
    await pair.source.query("CREATE TABLE taken (id int PRIMARY KEY); INSERT INTO taken VALUES (1), (2)");
    const more = { mode: "incremental", cursor_field: "id" } as const;
    for (const to of [pair.to, join(folder, "taken.sqlite")]) {
      const ends = { from: pair.from, object: "taken", to, table: "taken" };
      const warnings = async () => (await sync(ends, more)).warnings.map(({ code }) => code);
      expect(await warnings()).toEqual([]);
      expect(await warnings()).toEqual([]);
      if (to === pair.to) await pair.target.query("DELETE FROM taken");
      else {
        const lite = new DatabaseSync(to);
        lite.exec("DELETE FROM taken");
        lite.close();
      }
      expect(await warnings()).toEqual(["destination_emptied"]);
      await pair.source.query("INSERT INTO taken SELECT max(id) + 1 FROM taken");
      expect(await warnings()).toEqual(["destination_emptied"]);
      expect(await warnings()).toEqual([]);
      expect(await sync(ends, { ...more, reset: true })).toMatchObject({ warnings: [] });
    }
  });

  test("a run into a file that fails has synced nothing", async () => {
    const ends = { from: "pages.jsonl", object: "pages", to: join(folder, "pages.jsonl"), table: "pages" };
    const spec = specOf(ends, { mode: "incremental", state_file: join(folder, "state.json") });
    expect(await attempt(spec, 4)).toMatchObject({ status: "failed", records_synced: 0, changed: false });
    expect(await attempt(spec)).toMatchObject({ status: "completed", records_read: TOTAL, records_synced: TOTAL });
  });

  test("another cursor field reads everything again where there is a key, and is refused where rows would come twice", async () => {
    const from = join(folder, "from.sqlite");
    const db = new DatabaseSync(from);
    db.exec("CREATE TABLE t (id int PRIMARY KEY, a int, b int); INSERT INTO t VALUES (1, 1000, 1), (2, 2000, 2)");
    db.exec("CREATE TABLE log (a int, b int); INSERT INTO log VALUES (1000, 1)");
    const into = (table: string, cursor_field: string, more: Partial<SyncSpec> = {}) =>
      sync({ from, object: table, to: pair.to, table }, { mode: "incremental", cursor_field, ...more });
    expect(await into("t", "a")).toMatchObject({ records_synced: 2, error: null });
    expect(await into("log", "a")).toMatchObject({ records_synced: 1, error: null });
    db.exec("INSERT INTO t VALUES (3, 0, 3); INSERT INTO log VALUES (0, 3)");
    expect(await into("t", "b")).toMatchObject({ error: null });
    expect(await pair.target.lines("t")).toHaveLength(3);
    expect((await into("log", "b")).error).toMatchObject({ code: "validation_failed" });
    expect((await into("log", "b", { reset: true })).error).toBeNull();
    expect((await into("log", "b")).error).toBeNull();
    expect(await pair.target.lines("log")).toHaveLength(2);
    db.close();
  });

  test("another source reads everything again where there is a key, and is refused where rows would come twice; another address of the same does not", async () => {
    const elsewhere = await pair.server.createDatabase();
    const other = await connect(elsewhere);
    for (const [client, first] of [
      [pair.source, 100],
      [other, 1],
    ] as const)
      await client.query(
        `CREATE TABLE led (id int PRIMARY KEY, n int); INSERT INTO led VALUES (${first}, ${first}); CREATE TABLE led_log AS SELECT n FROM led`,
      );
    const from = (url: string, table: string, more: Partial<SyncSpec> = {}) =>
      sync(
        { from: url, object: table, to: pair.to, table },
        { sync_id: "sync_led", mode: "incremental", cursor_field: "n", ...more },
      );
    const link = join(folder, "socket");
    symlinkSync(pair.server.socketFolder, link);
    const moved = pair.from.replace(pair.server.socketFolder, link);
    for (const table of ["led", "led_log"]) {
      expect(await from(pair.from, table)).toMatchObject({ records_read: 1, warnings: [] });
      expect(await from(moved, table)).toMatchObject({ records_read: 0, warnings: [], error: null });
    }
    expect(await from(elsewhere, "led")).toMatchObject({ records_read: 1, warnings: [{ code: "source_changed" }] });
    expect(await from(elsewhere, "led")).toMatchObject({ records_read: 0, warnings: [] });
    expect(await pair.target.lines("led")).toEqual(["(1,1)", "(100,100)"]);
    expect((await from(elsewhere, "led_log")).error).toMatchObject({ code: "validation_failed" });
    expect((await from(elsewhere, "led_log", { reset: true })).error).toBeNull();
    expect(await pair.target.lines("led_log")).toEqual(["(1)"]);
    await other.end();
  });

  test("another file does not go on where the first one ended: it is read for anew, or refused where rows would come twice", async () => {
    await pair.source.query(
      "CREATE TABLE to_files (id int PRIMARY KEY, n int); INSERT INTO to_files VALUES (1, 1); CREATE TABLE to_files_log AS SELECT n FROM to_files",
    );
    for (const object of ["to_files", "to_files_log"]) {
      const run = (name: string) =>
        sync(
          { from: pair.from, object, to: join(folder, `${object}_${name}.csv`), table: object },
          { sync_id: "sync_files", mode: "incremental", cursor_field: "n", state_file: join(folder, `${object}.json`) },
        );
      expect((await run("a")).error).toBeNull();
      // One that is not there yet begins anew.
      expect(await run("b")).toMatchObject({ records_read: 1, error: null });
      const back = await run("a");
      if (object === "to_files") expect(back).toMatchObject({ records_read: 1, error: null });
      else expect(back.error).toMatchObject({ code: "validation_failed" });
    }
  });

  test("a key that has gone at the source is drift where changed rows would come twice", async () => {
    await pair.source.query("CREATE TABLE lost_key (id int PRIMARY KEY, n int); INSERT INTO lost_key VALUES (1, 1)");
    const to = join(folder, "lost_key.csv");
    const run = (more: Partial<SyncSpec> = {}) =>
      sync(
        { from: pair.from, object: "lost_key", to, table: "lost_key" },
        { mode: "incremental", cursor_field: "n", ...more },
      );
    expect((await run()).error).toBeNull();
    await pair.source.query("ALTER TABLE lost_key DROP CONSTRAINT lost_key_pkey; UPDATE lost_key SET n = 2");
    expect((await run()).error).toMatchObject({ code: "schema_drift" });
    expect((await run({ primary_key: ["id"] })).error).toBeNull();
    expect(readFileSync(to, "utf8")).toBe(`"id","n"\n1,2\n`);
  });

  test("another key is drift where the old one's index would refuse rows for good; a full refresh gives the table the new one", async () => {
    const { source, target } = pair;
    await source.query("CREATE TABLE rekeyed (id int PRIMARY KEY, k int, n int); INSERT INTO rekeyed VALUES (1, 1, 1)");
    const file = join(folder, "rekeyed.sqlite");
    const incremental = { mode: "incremental", cursor_field: "n" } as const;
    const runs = [pair.to, file].map(
      (to) => (more: Partial<SyncSpec>) => sync({ from: pair.from, object: "rekeyed", to, table: "rekeyed" }, more),
    );
    for (const run of runs) expect((await run(incremental)).error).toBeNull();
    await source.query(
      "ALTER TABLE rekeyed DROP CONSTRAINT rekeyed_pkey, ADD PRIMARY KEY (id, k); INSERT INTO rekeyed VALUES (1, 2, 2)",
    );
    for (const run of runs) {
      expect((await run(incremental)).error).toMatchObject({ code: "schema_drift" });
      expect(await run({})).toMatchObject({ records_synced: 2, error: null });
    }
    // Under another name it is another one too: no value comes for the old column any more.
    expect(await runs[0]?.({ mapping: { k: "m" } })).toMatchObject({ records_synced: 2, error: null });
    expect(await target.lines("rekeyed")).toEqual(["(1,,1,1)", "(1,,2,2)"]);
  });

  test("a SQLite table is made anew for another key only where a sync has said all of it", async () => {
    const [from, to] = ["keys_from.sqlite", "keys_to.sqlite"].map((name) => join(folder, name)) as [string, string];
    const source = new DatabaseSync(from);
    source.exec("CREATE TABLE t (id int, k int); INSERT INTO t VALUES (1, 2)");
    const target = new DatabaseSync(to);
    const made = [
      ...["k INT4 CHECK (k > 0)", "k INT4 UNIQUE", "k INT4 DEFAULT 7", "k VARCHAR(9)", "k TEXT COLLATE NOCASE"],
    ].map((column, at) => [
      `hand${at}`,
      `CREATE TABLE "hand${at}" ("id" INT4 NOT NULL, ${column}, PRIMARY KEY ("id"))`,
    ]);
    for (const [, sql = ""] of made) target.exec(sql);
    const run = async (table: string, key: string) =>
      expect((await sync({ from, object: "t", to, table }, { primary_key: [key] })).error).toBeNull();
    const textOf = (table: string) =>
      target.prepare("SELECT sql FROM sqlite_schema WHERE name = ?").get(table)?.["sql"];
    for (const [table = "", sql] of made) {
      await run(table, "id");
      await run(table, "k");
      expect(textOf(table)).toBe(sql);
    }
    await run("own", "id");
    source.exec("ALTER TABLE t ADD COLUMN v text");
    await run("own", "id");
    await run("own", "k");
    expect(textOf("own")).toMatch(/"v" TEXT, PRIMARY KEY \("k"\)\)$/);
    source.close();
    target.close();
  });

  test("columns that are mapped to each other's names are read anew: none holds the values of both", async () => {
    await pair.source.query(
      "CREATE TABLE crossed (id int PRIMARY KEY, a int, b int); INSERT INTO crossed VALUES (1, 1, 7), (2, 2, 8)",
    );
    const run = (more: Partial<SyncSpec> = {}) =>
      sync(
        { from: pair.from, object: "crossed", to: pair.to, table: "crossed" },
        { mode: "incremental", cursor_field: "a", ...more },
      );
    expect((await run()).error).toBeNull();
    expect((await run({ mapping: { a: "b", b: "a" } })).error).toBeNull();
    expect(await pair.target.lines("crossed")).toEqual(["(1,7,1)", "(2,8,2)"]);
    expect(await run({ mapping: { a: "b", b: "a" } })).toMatchObject({ records_read: 0, error: null });
  });

  test("columns of a SQLite table that exchange their names are read anew", async () => {
    const from = join(folder, "exchanged.sqlite");
    const db = new DatabaseSync(from);
    db.exec(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO t VALUES (1, 'a', 'b'), (2, 'a', 'b')",
    );
    const run = () =>
      sync({ from, object: "t", to: pair.to, table: "exchanged" }, { mode: "incremental", cursor_field: "id" });
    expect((await run()).error).toBeNull();
    db.exec("ALTER TABLE t RENAME a TO c; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME c TO b");
    db.close();
    expect((await run()).error).toBeNull();
    expect(await pair.target.lines("exchanged", "id, a, b")).toEqual(["(1,b,a)", "(2,b,a)"]);
  });

  test("a mapping that goes with its column, which is read no longer, lets the run go on where the last one ended", async () => {
    await pair.source.query(
      "CREATE TABLE fewer (id int PRIMARY KEY, a int, n int); INSERT INTO fewer VALUES (1, 1, 1); CREATE TABLE fewer_log AS SELECT a, n FROM fewer",
    );
    for (const object of ["fewer", "fewer_log"]) {
      const run = (more: Partial<SyncSpec>) =>
        sync(
          { from: pair.from, object, to: join(folder, "fewer.sqlite"), table: object },
          { mode: "incremental", cursor_field: "n", ...more },
        );
      expect(await run({ mapping: { a: "x" } })).toMatchObject({ records_read: 1, error: null });
      const columns = object === "fewer" ? ["id", "n"] : ["n"];
      expect(await run({ columns })).toMatchObject({ records_read: 0, error: null });
    }
  });

  test("a column that comes later has the values of rows that were there before", async () => {
    const file = join(folder, "wider.sqlite");
    const db = new DatabaseSync(file);
    for (const run of [pair.source.query, async (sql: string) => db.exec(sql)])
      await run("CREATE TABLE wider (id int PRIMARY KEY, n int); INSERT INTO wider VALUES (1, 1), (2, 2)");
    for (const from of [pair.from, file]) {
      await pair.target.query("DROP TABLE IF EXISTS wider");
      const ask = { mode: "incremental", cursor_field: "n" } as const;
      const run = () => sync({ from, object: "wider", to: pair.to, table: "wider" }, ask);
      expect((await run()).error).toBeNull();
      const add = "ALTER TABLE wider ADD COLUMN more int DEFAULT 5";
      if (from === file) db.exec(add);
      else await pair.source.query(add);
      expect((await run()).error).toBeNull();
      expect(await pair.target.lines("wider")).toEqual(["(1,1,5)", "(2,2,5)"]);
      expect((await run()).records_read).toBeLessThan(2);
    }
    db.close();
  });

  test("a column whose values alone tell its type is widened when wider ones come, and not refused them", async () => {
    const from = join(folder, "grown.jsonl");
    const run = () =>
      sync(
        { from, object: "grown", to: pair.to, table: "grown" },
        { mode: "incremental", cursor_field: "id", primary_key: ["id"] },
      );
    for (const line of ['{"id":1,"n":1}', '{"id":2,"n":1.5}', '{"id":3,"n":99999999999999999999}']) {
      appendFileSync(from, `${line}\n`);
      expect(await run()).toMatchObject({ records_rejected: 0, error: null });
    }
    // One that was rotated away names no columns at all.
    writeFileSync(from, "");
    expect(await run()).toMatchObject({ records_read: 0, error: null });
    expect(await pair.target.lines("grown")).toEqual(["(1,1)", "(2,1.5)", "(3,99999999999999999999)"]);
  });

  test("what a full refresh brought does not come a second time when the next run is incremental", async () => {
    await pair.source.query("CREATE TABLE seen (n int); INSERT INTO seen VALUES (1), (2)");
    const ends = { from: pair.from, object: "seen", to: pair.to, table: "seen" };
    expect((await sync(ends)).error).toBeNull();
    const ask = { mode: "incremental", cursor_field: "n" } as const;
    expect(await sync(ends, ask)).toMatchObject({ records_synced: 2, error: null });
    await pair.source.query("INSERT INTO seen VALUES (3)");
    expect(await sync(ends, ask)).toMatchObject({ records_synced: 1, error: null });
    expect(await pair.target.lines("seen")).toHaveLength(3);
  });
});
