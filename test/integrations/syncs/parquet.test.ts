// Parquet files of other writers.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ColumnSource, parquetWriteBuffer } from "hyparquet-writer";
import { expect, test } from "vitest";
import { parquet } from "#daemon/integrations/connectors/files/parquet.ts";
import { temporaryFolder } from "#test/temporary.ts";

const numbers = Int32Array.from({ length: 20_000 }, (_, at) => at);
const n: ColumnSource = { name: "n", data: numbers, type: "INT32", nullable: false, encoding: "PLAIN" };

const written = (...columnData: ColumnSource[]) =>
  Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 20_000, pageSize: 4000, codec: "UNCOMPRESSED" }));

async function* rowsOf(bytes: Buffer) {
  const path = join(temporaryFolder(), "other.parquet");
  writeFileSync(path, bytes);
  const reader = await parquet.open(path);
  for await (const { rows } of reader.read()) yield rows;
  await reader.close();
}

test("columns with pages of their own sizes, nested ones among them, are put together row by row", async () => {
  const j = { name: "j", data: Array.from(numbers, (at) => (at % 3 === 0 ? null : { at })) };
  const t = { name: "t", data: Array.from(numbers, (at) => (at % 5 === 0 ? null : `t${at % 7}`)) };
  const rows = [];
  for await (const some of rowsOf(written(j, n, t))) rows.push(...some);
  expect(rows).toEqual(
    Array.from(numbers, (at) => [at % 3 === 0 ? null : `{"at":${at}}`, String(at), at % 5 === 0 ? null : `t${at % 7}`]),
  );
});

test("a row group is read page by page, and a page that cannot be read ends it", async () => {
  const bytes = written(n);
  // The header of the page that begins with this number.
  const first = bytes.indexOf(new Uint8Array(Int32Array.of(15_000).buffer));
  bytes.fill(0xff, first - 8, first);
  const batches = rowsOf(bytes);
  expect((await batches.next()).value?.at(-1)).toEqual(["4999"]);
  await expect(Array.fromAsync(batches)).rejects.toMatchObject({ code: "source_failed" });
});
