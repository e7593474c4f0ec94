// What becomes of values on their way into columns that are there already: of texts, of wider and narrower types, of types with
// readers of their own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSource } from "#daemon/integrations/connectors/open.ts";
import { postgresMissing } from "#test/postgres.ts";
import { openPair, type Pair, sync } from "./harness.ts";

describe.skipIf(postgresMissing())("values", () => {
  const folder = mkdtempSync(join(tmpdir(), "magic-values-"));
  let pair: Pair;
  let { from, to, source, target } = {} as Pair;

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
  });
  afterAll(async () => {
    await pair?.close();
    rmSync(folder, { recursive: true, force: true });
  });

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
