// Parquet files: of other writers, and for other readers.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parquetMetadata, readOffsetIndex } from "hyparquet";
import { type ColumnSource, parquetWriteBuffer } from "hyparquet-writer";
import { expect, test } from "vitest";
import { parquet } from "#daemon/integrations/connectors/files/parquet.ts";
import { temporaryFolder } from "#test/temporary.ts";

const numbers = Int32Array.from({ length: 12_000 }, (_, at) => at);
const n: ColumnSource = { name: "n", data: numbers, type: "INT32", nullable: false, encoding: "PLAIN" };

const written = (...columnData: ColumnSource[]) =>
  Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: numbers.length, pageSize: 4000 }));

async function* rowsOf(bytes: Buffer) {
  const path = join(temporaryFolder(), "other.parquet");
  writeFileSync(path, bytes);
  const reader = await parquet.open(path);
  try {
    for await (const { rows } of reader.read()) yield rows;
  } finally {
    await reader.close();
  }
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

test("two columns of one name are read beside each other", async () => {
  const rows = [];
  for await (const some of rowsOf(written(n, n))) rows.push(...some);
  expect(rows).toEqual(Array.from(numbers, (at) => [String(at), String(at)]));
});

test("a row group is read page by page, and a page that cannot be read ends it", async () => {
  const bytes = written(n);
  const [chunk] = parquetMetadata(Uint8Array.from(bytes).buffer).row_groups[0]?.columns ?? [];
  const index = bytes.subarray(Number(chunk?.offset_index_offset));
  const pages = readOffsetIndex({ view: new DataView(Uint8Array.from(index).buffer), offset: 0 }).page_locations;
  const last = Number(pages.at(-1)?.offset);
  bytes.fill(0xff, last, last + 8);
  const batches = rowsOf(bytes);
  expect((await batches.next()).value?.at(-1)).toEqual(["4999"]);
  await expect(Array.fromAsync(batches)).rejects.toMatchObject({ code: "source_failed" });
});

test("a decimal of more digits than its column says has no form there", async () => {
  const path = join(temporaryFolder(), "digits.parquet");
  const type = { kind: "decimal", precision: 4, scale: 2 } as const;
  const writer = await parquet.create(path, [{ name: "d", type, nullable: true }], path);
  expect(await writer.write([["-99.99"], ["100"], ["-100.00"]])).toMatchObject([{ row: 1 }, { row: 2 }]);
  await writer.finish();
});
