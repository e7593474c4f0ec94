// Writes Parquet: integers, floats, booleans, decimals, dates and timestamps as Parquet's own types; what Parquet lacks as text, with
// PostgreSQL's type names in the file's metadata, so that they come back. One data page a column and row group, compressed with Snappy.
import { open } from "node:fs/promises";
import type { ColumnChunk, FileMetaData, RowGroup, SchemaElement } from "hyparquet";
import type { Column } from "../../../engine/types.ts";
import { nativeOf } from "../../postgres/types.ts";
import type { FileWriter } from "../format.ts";
import { columnBuffer, NoForm } from "./columns.ts";

export const METADATA_KEY = "magic.columns";
const GROUP_ROWS = 20_000;
const GROUP_BYTES = 8 << 20;
const MAGIC = Buffer.from("PAR1");

export async function createParquet(path: string, columns: readonly Column[]): Promise<FileWriter> {
  // The library's own writer makes an object of every value; its parts that know the format's structures are used.
  const [{ ByteWriter }, { writeMetadata }, { writePageHeader }, { snappyCompress }] = await Promise.all([
    import("hyparquet-writer"),
    import("hyparquet-writer/src/metadata.js"),
    import("hyparquet-writer/src/datapage.js"),
    import("hyparquet-writer/src/snappy.js"),
  ]);
  const elements = columns.map(elementOf);
  const buffers = columns.map((column, at) =>
    columnBuffer(column, elements[at]?.type ?? "BYTE_ARRAY", elements[at]?.converted_type === "DECIMAL"),
  );
  const groups: RowGroup[] = [];
  const file = await open(path, "w");
  let bytes = 0;
  let total = 0;
  let rows = 0;
  let held = 0;
  const write = async (chunk: Uint8Array) => {
    for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
    bytes += chunk.length;
  };
  const group = async () => {
    if (rows === 0) return;
    const chunks: ColumnChunk[] = [];
    const start = bytes;
    let plain = 0;
    for (const [at, buffer] of buffers.entries()) {
      const page = buffer.page();
      const compressed = snappyCompress(page);
      const header = new ByteWriter();
      writePageHeader(header, {
        type: "DATA_PAGE",
        uncompressed_page_size: page.length,
        compressed_page_size: compressed.length,
        data_page_header: {
          num_values: rows,
          encoding: "PLAIN",
          definition_level_encoding: "RLE",
          repetition_level_encoding: "RLE",
        },
      });
      const offset = BigInt(bytes);
      await write(header.getBytes());
      await write(compressed);
      const head = header.getBytes().length;
      plain += head + page.length;
      chunks.push({
        file_offset: offset,
        meta_data: {
          type: elements[at]?.type ?? "BYTE_ARRAY",
          encodings: ["PLAIN", "RLE"],
          path_in_schema: [columns[at]?.name ?? ""],
          codec: "SNAPPY",
          num_values: BigInt(rows),
          total_uncompressed_size: BigInt(head + page.length),
          total_compressed_size: BigInt(head + compressed.length),
          data_page_offset: offset,
        },
      });
      buffer.reset();
    }
    groups.push({
      columns: chunks,
      total_byte_size: BigInt(plain),
      num_rows: BigInt(rows),
      total_compressed_size: BigInt(bytes - start),
    });
    total += rows;
    rows = 0;
    held = 0;
  };
  await write(MAGIC);
  return {
    get bytes() {
      return bytes;
    },
    write: async (batch) => {
      const bad: { row: number; column: string; reason: string }[] = [];
      for (const [place, row] of batch.entries()) {
        let at = 0;
        try {
          for (; at < buffers.length; at++) {
            const value = row[at] ?? null;
            buffers[at]?.add(value);
            held += value?.length ?? 1;
          }
        } catch (error) {
          if (!(error instanceof NoForm)) throw error;
          bad.push({ row: place, column: columns[at]?.name ?? "", reason: error.message });
          while (--at >= 0) buffers[at]?.undo();
          continue;
        }
        rows++;
        if (rows >= GROUP_ROWS || held >= GROUP_BYTES) await group();
      }
      return bad;
    },
    finish: async () => {
      await group();
      const footer = new ByteWriter();
      const natives = JSON.stringify(columns.map((column) => ({ name: column.name, native: nativeOf(column) })));
      writeMetadata(footer, {
        version: 2,
        created_by: "magic",
        schema: [{ name: "root", num_children: columns.length }, ...elements],
        num_rows: BigInt(total),
        row_groups: groups,
        key_value_metadata: [{ key: METADATA_KEY, value: natives }],
      } as unknown as FileMetaData);
      await write(footer.getBytes());
      await write(MAGIC);
      await file.sync();
      await file.close();
    },
    abort: () => file.close(),
  };
}

function elementOf({ name, type }: Column): SchemaElement {
  const base = { name, repetition_type: "OPTIONAL" as const };
  switch (type.kind) {
    case "int":
      return { ...base, type: type.bits === 64 ? "INT64" : "INT32" };
    case "float":
      return { ...base, type: type.bits === 32 ? "FLOAT" : "DOUBLE" };
    case "bool":
      return { ...base, type: "BOOLEAN" };
    case "bytes":
      return { ...base, type: "BYTE_ARRAY" };
    case "date":
      return { ...base, type: "INT32", converted_type: "DATE" };
    case "timestamp":
      return {
        ...base,
        type: "INT64",
        logical_type: { type: "TIMESTAMP", isAdjustedToUTC: type.zone, unit: "MICROS" },
      };
    case "decimal":
      if (
        type.precision !== undefined &&
        type.precision <= 38 &&
        (type.scale ?? 0) >= 0 &&
        (type.scale ?? 0) <= type.precision
      )
        return {
          ...base,
          type: "FIXED_LEN_BYTE_ARRAY",
          type_length: 16,
          converted_type: "DECIMAL",
          precision: type.precision,
          scale: type.scale ?? 0,
        };
  }
  return { ...base, type: "BYTE_ARRAY", converted_type: "UTF8" };
}
