// PostgreSQL into another form and back: equal, or quarantined and counted; never silently changed.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { extremes } from "./extremes.ts";
import { openPair, type Pair, sync } from "./harness.ts";

describe.skipIf(postgresMissing())("round trips", () => {
  const folder = folderOfFile();
  let pair: Pair;
  let { from, to, source, target } = {} as Pair;

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
    await source.query(extremes);
    await target.query(extremes.slice(0, extremes.indexOf("INSERT")));
    await target.query("ALTER TABLE extremes RENAME TO shape");
  });
  afterAll(() => pair?.close());

  for (const [ending, typed] of [
    ["sqlite", false],
    ["parquet", false],
    ["sqlite", true],
    ["parquet", true],
    ["csv", true],
    ["jsonl", true],
  ] as const)
    test(`${ending} gives back every type${typed ? ", into a table with the same types" : ""}`, async () => {
      const file = join(folder, `all-${typed}.${ending}`);
      const table = `back_${ending}_${typed}`;
      if (typed) await target.query(`CREATE TABLE ${table} (LIKE shape INCLUDING ALL)`);
      const out = await sync({ from, object: "extremes", to: file, table: "extremes" });
      expect(out.error).toBeNull();
      const back = await sync({ from: file, object: "extremes", to, table });
      expect(back.error).toBeNull();
      const rejected = out.records_rejected + back.records_rejected;
      expect(out.records_read).toBe(4);
      expect(back.records_synced).toBe(4 - rejected);
      // JSON inside JSON keeps its meaning; only the json type also keeps its spacing.
      const list = await source.query(
        "SELECT string_agg(quote_ident(attname) || CASE WHEN attname = 'j' THEN '::jsonb' ELSE '' END, ', ' ORDER BY attnum) AS names FROM pg_attribute WHERE attrelid = 'extremes'::regclass AND attnum > 0",
      );
      const columns = ending === "jsonl" ? (list[0]?.["names"] ?? "*") : "*";
      const wanted = await source.lines("extremes", columns);
      const got = await target.lines(table, columns);
      // bytes and the rest of a rejected row are absent, not changed.
      for (const line of got) expect(wanted).toContain(line);
      expect(got.length).toBe(4 - rejected);
      if (ending === "jsonl") expect(out.rejects.map(({ key, column }) => [key, column])).toEqual([["0", "j"]]);
      else if (ending !== "parquet") expect([out.rejects, back.rejects]).toEqual([[], []]);
      else expect(out.rejects.map(({ column }) => column)).toEqual(["tsz", "day", "day"]);
    });

  test("a file is replaced as a whole, and nothing is left beside it", async () => {
    await source.query("CREATE TABLE simple AS SELECT i AS id, 'n' || i AS t FROM generate_series(1, 5) i");
    const file = join(folder, "simple.csv");
    expect(await sync({ from, object: "simple", to: file, table: "simple" })).toMatchObject({
      status: "completed",
      records_synced: 5,
    });
    expect(readFileSync(file, "utf8")).toBe('"id","t"\n1,n1\n2,n2\n3,n3\n4,n4\n5,n5\n');
    const before = readdirSync(folder);
    const failed = await sync({ from, object: "nothing", to: file, table: "simple" });
    expect(failed.error?.code).toBe("object_not_found");
    expect(readFileSync(file, "utf8")).toContain("5,n5");
    expect(readdirSync(folder)).toEqual(before);
  });

  test("a file without a byte is a new one, a folder none; tables named like our own are refused", async () => {
    await source.query("CREATE TABLE few AS SELECT i AS id FROM generate_series(1, 3) i");
    for (const ending of ["csv", "jsonl", "parquet", "sqlite"]) {
      const file = join(folder, `few.${ending}`);
      writeFileSync(file, "");
      expect(await sync({ from, object: "few", to: file, table: "few" })).toMatchObject({ records_synced: 3 });
    }
    mkdirSync(join(folder, "folder.csv"));
    const into = await sync({ from, object: "few", to: join(folder, "folder.csv"), table: "few" });
    expect(into.error?.code).toBe("destination_refused");
    const out = await sync({ from: join(folder, "folder.csv"), object: "few", to, table: "few" });
    expect(out.error?.code).toBe("source_failed");
    const ours = await sync({ from, object: "few", to, table: "_magic_state" });
    expect(ours.error?.code).toBe("validation_failed");
  });

  for (const ending of ["sqlite", "csv", "jsonl", "parquet"] as const)
    test(`incremental runs into ${ending} upsert by key`, async () => {
      const table = `inc_${ending}`;
      await source.query(
        `CREATE TABLE ${table} (id int PRIMARY KEY, t text, v bigint); INSERT INTO ${table} SELECT i, 'a', i FROM generate_series(1, 20) i`,
      );
      const file = join(folder, `inc.${ending}`);
      const run = () => sync({ from, object: table, to: file, table }, { mode: "incremental", cursor_field: "v" });
      expect(await run()).toMatchObject({ status: "completed", records_read: 20 });
      await source.query(
        `UPDATE ${table} SET t = 'b', v = 100 WHERE id = 3; INSERT INTO ${table} VALUES (21, 'c', 101)`,
      );
      const second = await run();
      expect(second.error).toBeNull();
      expect(second.records_read).toBe(2);
      await target.query(`DROP TABLE IF EXISTS ${table}; CREATE TABLE ${table} (id int PRIMARY KEY, t text, v bigint)`);
      expect((await sync({ from: file, object: table, to, table })).error).toBeNull();
      expect(await target.lines(table)).toEqual(await source.lines(table));
    });

  for (const ending of ["csv", "jsonl", "parquet"] as const)
    test(`a key that was asked for is unique and never null in ${ending}: the last record of each stays`, async () => {
      const list = join(folder, "keyed.csv");
      writeFileSync(list, 'id,v\n1,a\n"",x\n,b\n2,c\n1,d\n');
      for (const [mode, rejected] of [
        ["full_refresh", 2],
        ["incremental", 1],
      ] as const) {
        const file = join(folder, `keyed-${mode}.${ending}`);
        const ends = { from: list, object: "keyed", to: file, table: "keyed" };
        const outcome = await sync(ends, { mode, cursor_field: "v", primary_key: ["id"] });
        expect(outcome).toMatchObject({ error: null, records_read: 5, records_rejected: rejected });
        expect(outcome.rejects.map(({ reason }) => reason)).toContainEqual(expect.stringMatching(/null|NULL/));
        await target.query("DROP TABLE IF EXISTS keyed; CREATE TABLE keyed (id text, v text)");
        expect((await sync({ from: file, object: "keyed", to, table: "keyed" })).error).toBeNull();
        expect(await target.lines("keyed")).toEqual(['("",x)', "(1,d)", "(2,c)"]);
      }
    });

  test("CSV: null and the empty string, quotes, line breaks, a byte-order mark, missing last line feed, other delimiters", async () => {
    const file = join(folder, "odd.csv");
    writeFileSync(file, '\ufeffid,name,"a,b"\r\n1,,x\r\n2,"","line\nbreak ""q"""\r\n3,é,007');
    expect(await sync({ from: file, object: "odd", to, table: "odd" })).toMatchObject({
      status: "completed",
      records_synced: 3,
      proof: { source_count: 3, destination_count: 3 },
    });
    expect(await target.lines("odd", 'id, name IS NULL, "a,b"')).toEqual([
      "(1,t,x)",
      '(2,f,"line\nbreak ""q""")',
      "(3,f,007)",
    ]);
    const semicolons = join(folder, "semi.csv");
    writeFileSync(semicolons, "id;t\n1;a,b\n");
    await sync({ from: semicolons, object: "semi", to, table: "semi" });
    expect(await target.lines("semi")).toEqual(['(1,"a,b")']);
  });

  test("CSV: quotes in the middle of a field stay; what a float would round is found in a file that goes over unread", async () => {
    const file = join(folder, "quotes.csv");
    writeFileSync(file, 'id,t,f\n1,say "hi" now,0.1\n2,"a"b,1e22\n3,"x ""y""",9007199254740993\n4,,"0.5"\n');
    await target.query("CREATE TABLE quotes (id int PRIMARY KEY, t text, f double precision)");
    const outcome = await sync({ from: file, object: "quotes", to, table: "quotes" }, { on_bad_record: "quarantine" });
    expect(outcome.error).toBeNull();
    expect(outcome.rejects.map(({ key, column }) => [key, column])).toEqual([["row 3", "f"]]);
    expect(await target.query("SELECT t, f FROM quotes ORDER BY id")).toEqual([
      { t: 'say "hi" now', f: "0.1" },
      { t: '"a"b', f: "1e+22" },
      { t: null, f: "0.5" },
    ]);
    writeFileSync(file, 'id,t,f\n1,say "hi" now,0.1\n');
    const strict = await sync({ from: file, object: "quotes", to, table: "quotes" }, { on_bad_record: "fail" });
    expect(strict).toMatchObject({ status: "completed", records_synced: 1 });
  });

  test("CSV: a record that does not fit is quarantined, the others arrive", async () => {
    const file = join(folder, "ragged.csv");
    writeFileSync(file, "id,t\n1,a\n2\n3,c,d\nx,e\n5,f\n");
    await target.query("CREATE TABLE ragged (id int PRIMARY KEY, t text)");
    const outcome = await sync({ from: file, object: "ragged", to, table: "ragged" });
    expect(outcome).toMatchObject({ status: "completed", records_read: 5, records_synced: 2, records_rejected: 3 });
    expect(outcome.rejects.map(({ key }) => key).sort()).toEqual(["row 2", "row 3", "row 4"]);
    expect(await target.lines("ragged")).toEqual(["(1,a)", "(5,f)"]);
  });

  test("JSON Lines: large numbers keep their digits, mixed values stay apart, broken lines are quarantined", async () => {
    const file = join(folder, "odd.jsonl");
    writeFileSync(
      file,
      '{"id":1,"n":12345678901234567890.10,"m":5,"o":{"a":1.0},"b":true}\n{"id":2,"n":1,"m":"5","l":[1,null]}\nnot json\n',
    );
    const outcome = await sync({ from: file, object: "odd", to, table: "odd_jsonl" });
    expect(outcome).toMatchObject({
      status: "completed",
      records_read: 3,
      records_synced: 2,
      rejects: [{ key: "row 3" }],
    });
    expect(await target.query("SELECT n, m, o, b, l FROM odd_jsonl ORDER BY id")).toEqual([
      { n: "12345678901234567890.10", m: "5", o: '{"a": 1.0}', b: "t", l: null },
      { n: "1", m: '"5"', o: null, b: null, l: "[1, null]" },
    ]);
  });

  test("what a destination's types would round, cut or drop is quarantined, and bytes that are no UTF-8 too", async () => {
    const file = join(folder, "lossy.csv");
    writeFileSync(
      file,
      Buffer.concat([
        Buffer.from(
          "id,n,d,at,v\n1,1.50,2020-01-01,2020-01-01 00:00:00,ab\n2,1.005,,,\n3,,2020-01-01 12:00:00,,\n4,,,2020-01-01 00:00:00+02,\n5,,,2020-01-01 00:00:00.1234567,\n6,,,,ab \n7,1e-3,,,\n8,,,,\ufffd\n9,,,,",
        ),
        Buffer.from([0xff, 10]),
      ]),
    );
    await target.query("CREATE TABLE lossy (id int PRIMARY KEY, n numeric(10,2), d date, at timestamp, v varchar(2))");
    const outcome = await sync({ from: file, object: "lossy", to, table: "lossy" });
    expect(outcome.error).toBeNull();
    expect(outcome.rejects.map(({ key, column }) => `${key} ${column}`).sort()).toEqual([
      "row 2 n",
      "row 3 d",
      "row 4 at",
      "row 5 at",
      "row 6 v",
      "row 7 n",
      "row 8 null",
      "row 9 null",
    ]);
    expect(await target.lines("lossy")).toEqual(['(1,1.50,2020-01-01,"2020-01-01 00:00:00",ab)']);
  });

  test("JSON comes back as it was written: doubled keys, their order, escapes; half a surrogate pair is quarantined", async () => {
    const file = join(folder, "kept.jsonl");
    const kept = '{"b":1,"2":[1.0,{"x":"}\\"]"}],"b":2,"e":"\\ud83d\\ude00"}';
    writeFileSync(file, `{"id":1,"j":${kept},"s":"a"}\n{"id":2,"j":"text","s":"\\ud800"}\n{"id":3,"j":"text"}\n`);
    await target.query("CREATE TABLE kept (id int PRIMARY KEY, j json, s text)");
    const outcome = await sync({ from: file, object: "kept", to, table: "kept" });
    expect(outcome).toMatchObject({ status: "completed", records_synced: 2, rejects: [{ key: "row 2", column: "s" }] });
    expect(await target.query("SELECT j::text FROM kept ORDER BY id")).toEqual([{ j: kept }, { j: '"text"' }]);
  });

  test("jsonb: a doubled key is quarantined, an escape that it lacks costs that row alone", async () => {
    const file = join(folder, "doubled.jsonl");
    writeFileSync(
      file,
      '{"id":1,"v":{"a":1}}\n{"id":2,"v":{"a":"\\u0000"}}\n{"id":3,"v":{"b":{"x":1,"x":2}}}\n{"id":4,"v":{"n":12345678901234567890.50}}\n',
    );
    const outcome = await sync({ from: file, object: "doubled", to, table: "doubled" });
    expect(outcome.rejects.map(({ key }) => key).sort()).toEqual(["row 2", "row 3"]);
    expect(await target.query("SELECT id, v FROM doubled ORDER BY id")).toEqual([
      { id: "1", v: '{"a": 1}' },
      { id: "4", v: '{"n": 12345678901234567890.50}' },
    ]);
  });

  test("CSV: lines that end in carriage returns, or now so and now so; a header that is no UTF-8; names too long for PostgreSQL", async () => {
    const file = join(folder, "ends.csv");
    const run = (table: string) => sync({ from: file, object: "ends", to, table });
    writeFileSync(file, "id,t\r1,a\r2,b");
    expect(await run("ends_cr")).toMatchObject({ status: "completed", records_synced: 2 });
    writeFileSync(file, "id,t\r\n1,a\n2,b\r\n");
    expect(await run("ends_mixed")).toMatchObject({ status: "completed", records_synced: 2 });
    expect(await target.lines("ends_mixed")).toEqual(["(1,a)", "(2,b)"]);
    // Translated for Windows twice.
    writeFileSync(file, "id,t\r\r\n1,a\r\r\n2,b\r\r\n");
    expect(await run("ends_twice")).toMatchObject({ status: "completed", records_synced: 2, records_rejected: 0 });
    expect(await target.lines("ends_twice")).toEqual(["(1,a)", "(2,b)"]);
    writeFileSync(file, Buffer.from("id,caf\xe9\n1,a\n", "latin1"));
    expect((await run("ends_latin")).error).toMatchObject({ code: "source_failed" });
    writeFileSync(file, `id,${"c".repeat(64)}\n1,a\n`);
    expect((await run("ends_long")).error).toMatchObject({ code: "validation_failed" });
  });

  test("SQLite's texts that are no UTF-8 are quarantined, a replacement character is not", async () => {
    const file = join(folder, "broken.sqlite");
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(file);
    db.exec(
      "CREATE TABLE b (id int, t text); INSERT INTO b VALUES (1, CAST(x'ff' AS TEXT)), (2, CAST(x'efbfbd' AS TEXT)), (3, CAST(x'61ff' AS TEXT))",
    );
    db.close();
    const outcome = await sync({ from: file, object: "b", to, table: "b" });
    expect(outcome.rejects.map(({ key, column }) => [key, column])).toEqual([
      ["row 1", "t"],
      ["row 3", "t"],
    ]);
    expect(await target.lines("b")).toEqual(["(2,\ufffd)"]);
  });

  test("Parquet: any reader sees its types; nulls, rejected rows between others, and several row groups come out in order", async () => {
    await source.query(
      "CREATE TABLE grouped AS SELECT i AS id, CASE WHEN i % 3 = 0 THEN NULL ELSE i % 2 = 0 END AS b, CASE WHEN i = 7 THEN 'infinity'::date ELSE date '2020-01-27' + i END AS d, CASE WHEN i % 2 = 0 THEN -i::float8 END AS f, -i * 1000000007::bigint AS n, repeat('ü', i % 40) AS t FROM generate_series(1, 45000) i",
    );
    const file = join(folder, "grouped.parquet");
    const out = await sync({ from, object: "grouped", to: file, table: "grouped" });
    expect(out).toMatchObject({
      status: "completed",
      records_synced: 44_999,
      rejects: [{ key: "row 7", column: "d" }],
    });
    const { asyncBufferFromFile, parquetReadObjects } = await import("hyparquet");
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file), rowStart: 5, rowEnd: 7 });
    expect(rows).toEqual([
      { id: 6, b: null, d: new Date("2020-02-02"), f: -6, n: -6000000042n, t: "üüüüüü" },
      { id: 8, b: true, d: new Date("2020-02-04"), f: -8, n: -8000000056n, t: "üüüüüüüü" },
    ]);
    await source.query("DELETE FROM grouped WHERE id = 7");
    expect(await sync({ from: file, object: "grouped", to, table: "grouped" })).toMatchObject({ status: "completed" });
    const digest = "SELECT md5(string_agg(ROW(g.*)::text, ',' ORDER BY id)) AS m FROM grouped g";
    expect(await target.query(digest)).toEqual(await source.query(digest));
  });

  test("Parquet of other writers: what is nested keeps its digits, what has no text or no place is quarantined, LZ4 is read", async () => {
    const file = join(folder, "other.parquet");
    // Written by pyarrow: id, s (row 2 is no UTF-8), h float16, t time in nanoseconds (row 3 has one), n {d: [decimal(30,2)], f, at}.
    writeFileSync(
      file,
      Buffer.from(
        "UEFSMRUAFSQVKCwVBhUAFQYVBhwAAADwAwIAAAAGAQEAAAACAAAAAwAAABUAFS4VLiwVBhUAFQYVBhwAAABgAgAAAAYBBgDQb2sBAAAA/wIAAABvaxUAFRQVFiwVBhUAFQYVBhwAAACgAgAAAAMDAD4AABUAFTwVMCwVBhUAFQYVBhwAAACRAgAAAAYB6AMAAQAECACA6QMAAAAAAAAVABU2FTIsFQgVABUGFQYcAAAAcAIAAAADAgQGACEcAAEAkELtEjsL2CA6EhUAFR4VIiwVBhUAFQYVBhwAAADwAAMAAAADAgAAAAAAAAD4fxUAFR4VIiwVBhUAFQYVBhwAAADwAAMAAAADAgAAQPrBCJsFABUEGbw1ABgGc2NoZW1hFQoAFQIlAhgCaWQAFQwlAhgBcyUATBwAAAAVDhUEFQIYAWhs/AAAABUEJQIYAXRsfBIcPAAAAAAANQIYAW4VBgA1AhgBZBUCFQZMPAAAADUEGARsaXN0FQIAFQ4VGhUCGAdlbGVtZW50JQoVBBU8LFwVBBU8AAAAFQolAhgBZgAVBCUCGAJhdCUUTIwRHCwAAAAAABYGGRwZfCYAHBUCGSUGABkYAmlkFQ4WBhZKFk4mCEkcFQAVABUCADwpBhkmAAYAAAAmABwVDBklBgAZGAFzFQ4WBhZUFlQmVkkcFQAVABUCADwWChkGGSYABgAAACYAHBUOGSUGABkYAWgVDhYGFjoWPCaqAUkcFQAVABUCADwpBhkmAgQAAAAmABwVBBklBgAZGAF0FQ4WBhZiFlYm5gFJHBUAFQAVAgA8KQYZJgAGAAAAJgAcFQ4ZJQYAGUgBbgFkBGxpc3QHZWxlbWVudBUOFggWXBZYJrwCSRwVABUAFQIAPCkmBgIZVgQAAAICAAAAJgAcFQoZJQYAGSgBbgFmFQ4WBhZEFkgmlANJHBUAFQAVAgA8KQYZNgQAAgAAACYAHBUEGSUGABkoAW4CYXQVDhYGFkQWSCbcA0kcFQAVABUCADwpBhk2BAACAAAAFp4EFgYmCBacBAAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjYuMC4xGXwcAAAcAAAcAAAcAAAcAAAcAAAcAAAANgIAAFBBUjE=",
        "base64",
      ),
    );
    const outcome = await sync({ from: file, object: "other", to, table: "other" });
    expect(outcome.error).toBeNull();
    expect(outcome.rejects.map(({ key, column }) => [key, column])).toEqual([
      ["row 2", "s"],
      ["row 3", "t"],
    ]);
    expect(await target.query("SELECT * FROM other")).toEqual([
      {
        id: "1",
        s: "ok",
        h: "1.5",
        t: "00:00:00.000001",
        n: '{"d": [12345678901234567890.10, null], "f": "NaN", "at": "2020-01-01T00:00:00Z"}',
      },
    ]);
    // A column of a group that the schema does not have: what was read of the others must not end the process.
    const bytes = readFileSync(file);
    bytes.write("az", bytes.lastIndexOf("n\u0002at") + 2);
    writeFileSync(file, bytes);
    expect((await sync({ from: file, object: "other", to, table: "other" })).error).toMatchObject({
      code: "source_failed",
      message: expect.stringContaining('it has no column "n.az"'),
    });
  });

  test("a text with NUL, which PostgreSQL cannot hold, is quarantined", async () => {
    const file = join(folder, "nul.jsonl");
    writeFileSync(file, '{"id":1,"t":"a\\u0000b"}\n{"id":2,"t":"ok"}\n');
    const outcome = await sync({ from: file, object: "nul", to, table: "nul" }, { primary_key: ["id"] });
    expect(outcome).toMatchObject({
      status: "completed",
      records_synced: 1,
      records_rejected: 1,
      rejects: [{ key: "1" }],
    });
  });
});
