// CSV bytes in passing: cut anywhere, the same records are counted, the same fields are looked at, the same quotes are objected to.
import { expect, test } from "vitest";
import { CsvInspector } from "#daemon/integrations/connectors/files/csv-inspect.ts";
import { isReadByRecord } from "#daemon/integrations/engine/source.ts";

function inspect(text: string, size: number): { records: number | null; seen: unknown[] } {
  const seen: unknown[] = [];
  const inspector = new CsvInspector([
    {
      at: 1,
      check: (value) => {
        seen.push(value);
        return value === "bad" ? "bad" : null;
      },
    },
  ]);
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; at += size) inspector.take(bytes.subarray(at, at + size));
    inspector.end();
  } catch (error) {
    if (!isReadByRecord(error)) throw error;
    return { records: null, seen: [] };
  }
  return { records: inspector.records, seen };
}

test.each([
  ["1,a\n2,b\n", 2, ["a", "b"]],
  ["1,a\r\n2,b", 2, ["a", "b"]],
  ['1,"a\nb"\r\n2,"x""y",z\n', 2, ["a\nb", 'x"y']],
  ['1,""\n2,"",""\n', 2, ["", ""]],
  ['"a","b,""c\n"""\n3,4\n', 2, ['b,"c\n"', "4"]],
  ['1,say "hi"\n', null, []],
  ['1,"a"b\n', null, []],
  ['1,"a', null, []],
  ["1,good\n2,bad\n", null, []],
])("%j holds %j records", (text, records, seen) => {
  for (const size of [1, 2, 3, 5, 1000]) {
    const found = inspect(text, size);
    expect(found.records).toBe(records);
    expect([...new Set(found.seen)]).toEqual([...new Set(seen)]);
  }
});
