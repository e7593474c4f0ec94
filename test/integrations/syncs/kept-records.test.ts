// Incremental runs into files: what was there stays as it was, and a key is the same key however a format writes it.
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openKeyTable } from "#daemon/integrations/connectors/files/key-table.ts";
import { folderOfFile } from "#test/temporary.ts";
import { sync } from "./harness.ts";

const folder = folderOfFile();

const incremental = { mode: "incremental", cursor_field: "c" } as const;
test("a key that a file writes otherwise than its source is the same key", async () => {
  const from = join(folder, "keys.sqlite");
  const db = new DatabaseSync(from);
  db.exec(`CREATE TABLE t (
    instant "TEXT timestamp with time zone", moment "TEXT timestamp without time zone", raw BLOB, whole INT8,
    amount "TEXT numeric(10,2)", float FLOAT8, tiny FLOAT4, js "TEXT jsonb", c INT8, v TEXT)`);
  const put = (amount: string, c: number, v: string) =>
    db
      .prepare(
        `INSERT INTO t VALUES ('2020-01-01 00:00:00.5+00', '2020-01-01 00:00:00', x'00ff', 7, ?, 1e20, 1e-45, '"x"', ?, ?)`,
      )
      .run(amount, c, v);
  put("1.5", 1, "old");
  const primary_key = ["instant", "moment", "raw", "whole", "amount", "float", "tiny", "js"];
  for (const ending of ["csv", "jsonl", "parquet"]) {
    db.exec("DELETE FROM t WHERE c > 1");
    const to = join(folder, `keys.${ending}`);
    const run = () => sync({ from, object: "t", to, table: "t" }, { ...incremental, primary_key });
    expect((await run()).error, ending).toBeNull();
    put("1.50", 2, "new");
    expect((await run()).proof.destination_count, ending).toBe(1);
  }
  db.close();
});

test("what a killed writer left half written in a SQLite file is not read", async () => {
  const [live, from] = [join(folder, "live.sqlite"), join(folder, "left.sqlite")];
  const db = new DatabaseSync(live);
  db.exec("CREATE TABLE t (v INT, pad TEXT); PRAGMA cache_size = 1");
  const insert = (v: number) =>
    db.exec(
      `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO t SELECT ${v}, hex(zeroblob(2000)) FROM n`,
    );
  insert(1);
  // More than its cache holds is in the file before the transaction ends.
  db.exec("BEGIN");
  insert(2);
  copyFileSync(live, from);
  copyFileSync(`${live}-journal`, `${from}-journal`);
  db.close();
  const ends = { from, object: "t", to: join(folder, "left.jsonl"), table: "t" };
  expect(await sync(ends)).toMatchObject({ error: null, records_synced: 50 });
});

test("the id of a state file leads to no other folder", async () => {
  writeFileSync(join(folder, "led.csv"), "c\n1\n");
  // What is written first would be this.
  mkdirSync(join(folder, "else.partial"));
  const ends = { from: join(folder, "led.csv"), object: "led", to: join(folder, "out", "led.jsonl"), table: "led" };
  mkdirSync(join(folder, "out"));
  expect(await sync(ends, { sync_id: "s/../../else" })).toMatchObject({ error: null, records_synced: 1 });
});

test("two syncs into one file keep a state each, until one of them replaces it", async () => {
  const to = join(folder, "shared.jsonl");
  const run = (name: string, mode: "incremental" | "full_refresh" = "incremental") =>
    sync({ from: join(folder, `${name}.csv`), object: "x", to, table: "x" }, { ...incremental, mode });
  for (const name of ["one", "two"]) writeFileSync(join(folder, `${name}.csv`), `c,v\n1,${name}\n`);
  for (const [name, synced] of [
    ["one", 1],
    ["two", 1],
    ["one", 0],
    ["two", 0],
  ] as const)
    expect(await run(name)).toMatchObject({ error: null, records_synced: synced });
  expect(readFileSync(to, "utf8")).toBe('{"c":"1","v":"one"}\n{"c":"1","v":"two"}\n');
  await run("two", "full_refresh");
  expect(await run("one")).toMatchObject({ error: null, records_synced: 1 });
  expect(readFileSync(to, "utf8")).toBe('{"c":"1","v":"two"}\n{"c":"1","v":"one"}\n');
  // What had come of the other is gone with the file.
  for (const lose of [() => rmSync(to), () => writeFileSync(to, "")]) {
    lose();
    expect(await run("two")).toMatchObject({ error: null, records_synced: 1 });
    expect(await run("one")).toMatchObject({ error: null, records_synced: 1 });
    expect(readFileSync(to, "utf8")).toBe('{"c":"1","v":"two"}\n{"c":"1","v":"one"}\n');
  }
});

test("what a killed run left beside the file is replaced, not written into", async () => {
  const [from, to, other] = ["left-from.csv", "left.csv", "other.csv"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(from, "c,v\n1,a\n");
  expect(await sync({ from, object: "x", to, table: "x" }, {})).toMatchObject({ error: null });
  const { sync_id } = JSON.parse(readFileSync(`${to}.magic-state`, "utf8"));
  writeFileSync(other, "kept");
  linkSync(other, join(folder, `.left.csv.${sync_id.slice(-12)}.partial`));
  expect(await sync({ from, object: "x", to, table: "x" }, {})).toMatchObject({ error: null });
  expect([readFileSync(other, "utf8"), readFileSync(to, "utf8")]).toEqual(["kept", '"c","v"\n1,a\n']);
});

test.skipIf(process.getuid?.() !== 0)("a file that root replaces stays its owner's", async () => {
  const [from, to] = [join(folder, "owned-from.csv"), join(folder, "owned.csv")];
  writeFileSync(from, "c,v\n1,a\n");
  writeFileSync(to, "");
  chmodSync(to, 0o600);
  chownSync(to, 1234, 1235);
  expect(await sync({ from, object: "x", to, table: "x" })).toMatchObject({ error: null });
  const { uid, gid, mode } = statSync(to);
  expect([uid, gid, mode & 0o777]).toEqual([1234, 1235, 0o600]);
});

test("records of JSON Lines that stay are not written anew: NaN, JSON strings, lines of others", async () => {
  const from = join(folder, "plain.sqlite");
  const db = new DatabaseSync(from);
  db.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, c INT8, j "TEXT jsonb", n "TEXT numeric")');
  db.exec(`INSERT INTO t VALUES (1, 1, '"x"', 'NaN'), (2, 1, '"y"', '1.5'), (3, 2, '{}', '1')`);
  const to = join(folder, "plain.jsonl");
  const run = () => sync({ from, object: "t", to, table: "t" }, incremental);
  expect((await run()).error).toBeNull();
  const before = readFileSync(to, "utf8");
  expect(before).toContain('"j":"x","n":"NaN"');
  const mine = '{"mine": 1.0, "mine": 2}\n{"id": \n';
  writeFileSync(to, before + mine);
  db.exec("UPDATE t SET j = '[]' WHERE id = 3");
  db.close();
  expect((await run()).proof.destination_count).toBe(5);
  const [first, second] = before.split("\n");
  expect(readFileSync(to, "utf8")).toBe(`${first}\n${second}\n${mine}{"id":3,"c":2,"j":[],"n":1}\n`);
});

test("a record that cannot be kept fails the run, and nothing is changed", async () => {
  const from = join(folder, "more.csv");
  const to = join(folder, "ragged.csv");
  writeFileSync(from, "id,c\n2,2\n");
  for (const there of ["id,c\n1\n", Buffer.from("id,c\n1,\xff\n", "latin1")]) {
    writeFileSync(to, there);
    const { error } = await sync({ from, object: "more", to, table: "t" }, { ...incremental, primary_key: ["id"] });
    expect(error).toMatchObject({ code: "destination_refused", message: expect.stringContaining("row 1") });
    expect(readFileSync(to)).toEqual(Buffer.from(there));
  }
});

test("keys beyond what memory is for are found on the disk", async () => {
  const path = join(folder, "keys");
  const table = await openKeyTable(path, 3);
  for (const [place, key] of ["a", "b", "c", "a", "d", "e", "b"].entries()) table.set(key, place);
  expect(existsSync(path)).toBe(true);
  expect(["a", "b", "c", "d", "e", "f"].map((key) => table.get(key))).toEqual([3, 6, 2, 4, 5, undefined]);
  table.remove();
  expect(existsSync(path)).toBe(false);
});
