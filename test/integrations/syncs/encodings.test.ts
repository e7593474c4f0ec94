// Source files that are no UTF-8, or no table: the refusal names what they are.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { csv } from "#daemon/integrations/connectors/files/csv.ts";
import { jsonl } from "#daemon/integrations/connectors/files/jsonl.ts";
import { connectorOf } from "#daemon/integrations/connectors/open.ts";
import { temporaryFolder } from "#test/temporary.ts";

test.each([
  ["rows.jsonl", jsonl, '{"id":1}\n{"id":2}\n'],
  ["rows.csv", csv, "id,nä\n1,2\n"],
] as const)("%s in UTF-16 or packed is refused by that name", async (name, format, text) => {
  const path = join(temporaryFolder(), name);
  for (const [bytes, said] of [
    [Buffer.from(`\ufeff${text}`, "utf16le"), "but UTF-16: convert it first, e.g. with iconv -f UTF-16 -t UTF-8"],
    [Buffer.from(text, "utf16le").swap16(), "but UTF-16"],
    [gzipSync(text), "but gzip: unpack it first, e.g. with gunzip"],
    [Buffer.from(text.replaceAll(/["d]/g, "\xe4"), "latin1"), "but another encoding: convert it first"],
  ] as const) {
    writeFileSync(path, bytes);
    await expect(format.open(path)).rejects.toThrow(said);
  }
});

test("a packed file is refused by its ending too, with what to do", () => {
  for (const path of ["rows.csv.gz", "/data/rows.jsonl.zst"])
    expect(() => connectorOf(path)).toThrow(
      "is a packed file, and those are neither read nor written: unpack it first",
    );
});

test("lines that are UTF-8 and no objects are told as that", async () => {
  const path = join(temporaryFolder(), "rows.jsonl");
  writeFileSync(path, `${"ä".repeat(3000)}\n`);
  await expect(jsonl.open(path)).rejects.toThrow("none of its 1 lines is a JSON object");
});

test("ids in the place of members' names are refused: every row would have so many values", async () => {
  const path = join(temporaryFolder(), "ids.jsonl");
  const names = Array.from({ length: 10_001 }, (_, at) => `user_${at}`);
  const write = (some: readonly string[]) => writeFileSync(path, some.map((name) => `{"${name}":1}\n`).join(""));
  write(names.slice(1));
  const reader = await jsonl.open(path);
  expect(reader.columns).toHaveLength(10_000);
  await reader.close();
  write(names);
  await expect(jsonl.open(path)).rejects.toThrow("more than 10000 names");
});

test.each([
  ["wide.jsonl", jsonl, (names: string[]) => `{${names.map((name) => `"${name}":1`).join(",")}}\n`.repeat(2)],
  ["wide.csv", csv, (names: string[]) => `${names.join(",")}\n`],
] as const)("%s is as wide as its records are", async (name, format, textOf) => {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, textOf(Array.from({ length: 10_001 }, (_, at) => `gene_${at}`)));
  const reader = await format.open(path);
  expect(reader.columns).toHaveLength(10_001);
  await reader.close();
});
