// Parquet files: of other writers, and for other readers.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parquetMetadata, readOffsetIndex, type SchemaElement } from "hyparquet";
import { type ColumnSource, parquetWriteBuffer } from "hyparquet-writer";
import { expect, test } from "vitest";
import { csv } from "#daemon/integrations/connectors/files/csv.ts";
import { jsonl } from "#daemon/integrations/connectors/files/jsonl.ts";
import { parquet } from "#daemon/integrations/connectors/files/parquet/format.ts";
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

test("lists and structs are put together page by page", async () => {
  const schema: SchemaElement[] = [
    { name: "root", num_children: 2 },
    { name: "l", repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST" },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", repetition_type: "OPTIONAL", type: "INT32" },
    { name: "s", repetition_type: "OPTIONAL", num_children: 2 },
    { name: "a", repetition_type: "OPTIONAL", type: "INT32" },
    { name: "b", repetition_type: "REQUIRED", type: "BYTE_ARRAY", converted_type: "UTF8" },
  ];
  const lists = Array.from(numbers, (at) =>
    at % 7 === 0 ? null : Array.from({ length: at % 5 }, (_, place) => (place === 3 ? null : at + place)),
  );
  const structs = Array.from(numbers, (at) => (at % 11 === 0 ? null : { a: at % 3 === 0 ? null : at, b: `t${at}` }));
  const columnData = [
    { name: "l", data: lists },
    { name: "s", data: structs },
  ];
  const written = parquetWriteBuffer({ columnData, schema, rowGroupSize: numbers.length, pageSize: 1000 });
  const rows = [];
  for await (const some of rowsOf(Buffer.from(written))) rows.push(...some);
  const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
  expect(rows).toEqual(Array.from(numbers, (at) => [json(lists[at]), json(structs[at])]));
});

test("two columns of one name are read beside each other", async () => {
  const rows = [];
  for await (const some of rowsOf(written(n, n))) rows.push(...some);
  expect(rows).toEqual(Array.from(numbers, (at) => [String(at), String(at)]));
});

test("nanoseconds are kept in files of text, as nine digits of a second", async () => {
  const schema: SchemaElement[] = [
    { name: "root", num_children: 2 },
    { name: "at", type: "INT64", logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "NANOS" } },
    { name: "clock", type: "INT64", logical_type: { type: "TIME", isAdjustedToUTC: false, unit: "NANOS" } },
  ];
  const columnData = [
    { name: "at", data: [-1n, 1_500_000_000_123_456_789n, 1000n] },
    { name: "clock", data: [1n, 86_399_999_999_999n, 1000n] },
  ];
  const path = join(temporaryFolder(), "nanos.parquet");
  writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData, schema })));
  const { columns, read, close } = await parquet.open(path);
  const rows = (await Array.fromAsync(read())).flatMap((batch) => batch.rows);
  await close();
  for (const [format, lines] of [
    [
      csv,
      '"at","clock"\n1969-12-31 23:59:59.999999999+00,00:00:00.000000001\n2017-07-14 02:40:00.123456789+00,23:59:59.999999999\n1970-01-01 00:00:00.000001+00,00:00:00.000001\n',
    ],
    [
      jsonl,
      '{"at":"1969-12-31T23:59:59.999999999Z","clock":"00:00:00.000000001"}\n{"at":"2017-07-14T02:40:00.123456789Z","clock":"23:59:59.999999999"}\n{"at":"1970-01-01T00:00:00.000001Z","clock":"00:00:00.000001"}\n',
    ],
  ] as const) {
    const out = join(temporaryFolder(), "nanos");
    const writer = await format.create(out, columns, out);
    await writer.write(rows);
    await writer.finish();
    expect(readFileSync(out, "utf8")).toBe(lines);
  }
});

test("a file with Parquet's encryption is called so", async () => {
  const bytes = written(n);
  bytes.write("PARE", bytes.length - 4);
  await expect(rowsOf(bytes).next()).rejects.toMatchObject({
    code: "source_failed",
    message: expect.stringContaining("is encrypted"),
  });
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

test("of many columns each knows its own place in the schema alone: memory grows with them, not with their square", async () => {
  const columns = Array.from({ length: 2000 }, (_, at) => ({
    name: `c${at}`,
    data: Int32Array.of(at),
    type: "INT32" as const,
  }));
  const bytes = Buffer.from(parquetWriteBuffer({ columnData: columns }));
  const before = process.memoryUsage().heapUsed;
  const batches = rowsOf(bytes);
  expect((await batches.next()).value?.[0]?.at(-1)).toBe("1999");
  // Its readers are still there.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(200 << 20);
  await batches.return();
});

test("a decimal of more digits than its column says has no form there", async () => {
  const path = join(temporaryFolder(), "digits.parquet");
  const type = { kind: "decimal", precision: 4, scale: 2 } as const;
  const writer = await parquet.create(path, [{ name: "d", type, nullable: true }], path);
  expect(await writer.write([["-99.99"], ["100"], ["-100.00"]])).toMatchObject([{ row: 1 }, { row: 2 }]);
  await writer.finish();
});
