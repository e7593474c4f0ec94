// Files that somebody appends to, replaces or cuts while they are read: the rows of the moment when they were opened, or an error.
import { appendFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FileReader } from "#daemon/integrations/connectors/files/format.ts";
import { type FormatName, formatOf } from "#daemon/integrations/connectors/files/formats.ts";
import type { Column } from "#daemon/integrations/engine/types.ts";
import { folderOfFile } from "#test/temporary.ts";

describe("a file that changes while it is read", () => {
  const folder = folderOfFile();
  const columns: Column[] = ["a", "b"].map((name) => ({
    name,
    type: { kind: "string" },
    nullable: true,
    native: "text",
  }));

  // Several row groups, so that a Parquet file is read in parts.
  const write = async (format: FormatName, path: string, letter: string) => {
    const writer = await (await formatOf(format)).create(path, columns, path);
    for (let part = 0; part < 5; part++)
      await writer.write(
        Array.from({ length: 10_000 }, (_, at) => [`${letter}${part * 10_000 + at}`, letter.repeat(40)]),
      );
    await writer.finish();
  };
  const letters = async (reader: FileReader) => {
    const seen = new Map<string, number>();
    for await (const { rows } of reader.read())
      for (const [a] of rows) seen.set(String(a)[0] ?? "", (seen.get(String(a)[0] ?? "") ?? 0) + 1);
    return Object.fromEntries(seen);
  };

  for (const format of ["csv", "jsonl", "parquet"] as const) {
    test(`${format}: another file in its place changes nothing, appended records come with the next run`, async () => {
      const [path, other] = [join(folder, `a.${format}`), join(folder, `b.${format}`)];
      await write(format, path, "x");
      await write(format, other, "y");
      const reader = await (await formatOf(format)).open(path);
      if (format !== "parquet") appendFileSync(path, format === "csv" ? "z,z\n" : '{"a":"z","new":1}\n');
      renameSync(other, path);
      expect(await letters(reader)).toEqual({ x: 50_000 });
      await reader.close();
    });

    test(`${format}: one that is cut fails the read`, async () => {
      const path = join(folder, `cut.${format}`);
      await write(format, path, "x");
      const reader = await (await formatOf(format)).open(path);
      truncateSync(path, 1000);
      await expect(letters(reader)).rejects.toThrow(/became shorter while it was read/);
      await reader.close();
    });
  }

  test("what is no JSON is not put into JSON Lines as such", async () => {
    const path = join(folder, "json.jsonl");
    const json: Column[] = [{ name: "j", type: { kind: "json", binary: true }, nullable: true }];
    const writer = await (await formatOf("jsonl")).create(path, json, path);
    expect(await writer.write([['{"a":1}'], ["{a:1}"], [null]])).toMatchObject([
      { row: 1, reason: "the value is no JSON" },
    ]);
    await writer.finish();
    writeFileSync(path, "");
  });
});
