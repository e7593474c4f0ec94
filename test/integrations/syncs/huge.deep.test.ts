// A row of 100 MB, through raw COPY and through rows.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { connect, sync } from "./harness.ts";

test.skipIf(postgresMissing())("bytes whose text is longer than any can be cost their row alone", async () => {
  const server = await startPostgres();
  const folder = temporaryFolder();
  const from = await server.createDatabase();
  const source = await connect(from);
  await source.query(
    "CREATE TABLE huge (n int, b bytea); INSERT INTO huge VALUES (1, 'a'), (2, decode(repeat('00ff', 140000000), 'hex')), (3, 'b')",
  );
  const outcome = await sync({ from, object: "huge", to: join(folder, "huge.jsonl"), table: "huge" });
  expect(outcome).toMatchObject({ status: "completed", records_synced: 2, rejects: [{ key: "row 2" }] });
  await source.end();
  await server.stop();
});

test.skipIf(postgresMissing())("a row of 100 MB arrives", async () => {
  const server = await startPostgres();
  const folder = temporaryFolder();
  const [from, to] = [await server.createDatabase(), await server.createDatabase()];
  const [source, target] = [await connect(from), await connect(to)];
  await source.query(
    "CREATE TABLE huge (id int PRIMARY KEY, t text, b bytea); INSERT INTO huge VALUES (1, repeat('é', 50000000), NULL), (2, 'a', decode(repeat('00ff', 10000000), 'hex'))",
  );
  const file = join(folder, "huge.sqlite");
  expect((await sync({ from, object: "huge", to, table: "huge" })).error).toBeNull();
  expect((await sync({ from, object: "huge", to: file, table: "huge" })).error).toBeNull();
  expect((await sync({ from: file, object: "huge", to, table: "back" })).error).toBeNull();
  const sums = "id, md5(t), md5(b)";
  const wanted = await source.lines("huge", sums);
  expect(await target.lines("huge", sums)).toEqual(wanted);
  expect(await target.lines("back", sums)).toEqual(wanted);
  await Promise.all([source.end(), target.end()]);
  await server.stop();
});

test("a line of JSON Lines that is too long costs its record alone, a quote that nobody closes the run", async () => {
  const folder = temporaryFolder();
  const run = (file: string) => sync({ from: file, object: "huge", to: `${file}.sqlite`, table: "huge" });
  const grow = (file: string, begin: string, end: string) => {
    writeFileSync(file, begin);
    for (let i = 0; i < 30; i++) appendFileSync(file, "x".repeat(10_000_000));
    appendFileSync(file, end);
    return file;
  };
  const lines = grow(join(folder, "huge.jsonl"), '{"id":1}\n{"id":"', '"}\n{"id":3}\n');
  expect(await run(lines)).toMatchObject({ status: "completed", records_synced: 2, rejects: [{ key: "row 2" }] });
  const { error } = await run(grow(join(folder, "huge.csv"), 'id\n1\n"', "\n3\n"));
  expect(error).toMatchObject({ code: "source_failed", message: expect.stringContaining("record 2 is longer") });
});
