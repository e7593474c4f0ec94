// Which texts a column of a type would change without a word, and which it takes as they are.
import { expect, test } from "vitest";
import { normalise } from "#daemon/integrations/connectors/declarative/read/normalise.ts";
import { memberCount, memberTexts } from "#daemon/integrations/connectors/files/json-members.ts";
import { jsonOf } from "#daemon/integrations/connectors/files/jsonl.ts";
import { keyForm } from "#daemon/integrations/connectors/files/key-form.ts";
import { fitOf } from "#daemon/integrations/connectors/mysql/fit.ts";
import { placeIn } from "#daemon/integrations/connectors/mysql/write-rows.ts";
import { typeOfNative } from "#daemon/integrations/connectors/postgres/types.ts";
import { writeValue } from "#daemon/integrations/connectors/sqlite/types.ts";
import { checkOf } from "#daemon/integrations/engine/fit-checks.ts";
import { hasDoubledKeys } from "#daemon/integrations/engine/json-keys.ts";
import type { Column } from "#daemon/integrations/engine/types.ts";
import { within } from "../../patience.ts";

const postgres: readonly (readonly [type: string, kept: readonly string[], changed: readonly string[]])[] = [
  [
    "double precision",
    [
      "0.1",
      "0.10000000000000001",
      "-9150034669965.062",
      "9007199254740992",
      "1e22",
      "5e-324",
      "1.7976931348623157e308",
      "-0",
      "NaN",
    ],
    ["9007199254740993", "123456789.123456789", "1e-400", "1e400"],
  ],
  ["real", ["0.1", "16777216", "3.4028235e38", "1e-45", "1.17549435e-38"], ["16777217", "123456789.1"]],
  ["numeric(10,2)", ["1.5", "1.500", "1e3", "abc"], ["1.005", "1e-3"]],
  ["numeric(10,2)[]", ["{1.00,NULL}", "[0:1]={1.5,2.25}"], ["{1.005}", '{{"1.001"}}']],
  ["timestamp(0) with time zone[]", ["{infinity,NULL,2020-01-01}"], ['{"NULL"}', "{2020-01-01 00:00:00.5,NULL}"]],
  ["date", ["2020-01-01", "20200101", "4713-01-01 BC", "-infinity"], ["now", "today", "$1.005", "2020-01-01 12:00"]],
  [
    "timestamp without time zone",
    ["2020-01-01 00:00:00Z", "infinity", "2020-01-01 12:00:00 AM", "0044-03-15 12:00 BC", "2020-01-01 00:00:00 UTC"],
    ["tomorrow", "2020-01-01 00:00:00+02", "2020-01-01 12:00:00 Europe/Berlin", "2020-01-01 12:00 CET"],
  ],
  [
    "time without time zone",
    ["12:00", "T04:05:06", "04:05 PM"],
    ["2020-01-01 12:00:00", "12:00:00+02", "now", "12:00:00.1234567"],
  ],
  ["time with time zone", ["12:00:00+05:30", "12:00:00.123456-0530"], ["2020-01-01 12:00:00+02"]],
  ["interval", ["1.5", "1 year", "1.5 months"], ["0.0000001 sec", "00:00:01.1234567"]],
  ["interval(0)", ["2 s"], ["1.5"]],
  ["interval day to hour", ["1 day 02:00:00", "-3 days", "00:00:00"], ["1.5", "12:00:00.5", "00:01:00", "0.1"]],
  ["interval year to month", ["3 years 4 mons", "-1 years"], ["1 day", "1 mon 00:00:01"]],
  ["interval day to second(3)", ["1 day 00:00:01.123", "1.5"], ["00:00:01.1234"]],
  ["money", ["-$1,000.50", "$0.00", "1,234,567.89"], ["$1.005", "", "1,5"]],
  ["oid", ["0", "4294967295"], ["-1", "4294967296", "18446744073709551615"]],
  ["bit varying", ["", "101", "b1"], ["b"]],
  ['"char"', ["a", "\\377"], ["ab", "\\3777"]],
];

for (const [native, kept, changed] of postgres)
  test(`${native}: what it would change is told from what it keeps`, () => {
    const check = checkOf({ type: typeOfNative(native), native });
    expect(kept.filter((text) => check?.(text))).toEqual([]);
    expect(changed.filter((text) => !check?.(text))).toEqual([]);
  });

const mysql: readonly (readonly [
  declared: string,
  type: Column["type"],
  kept: readonly string[],
  changed: readonly string[],
])[] = [
  ["int(11)", { kind: "int", bits: 32 }, ["1", "-7", "1.0", "1e3"], ["1.5", "0.1"]],
  ["bit(8)", { kind: "decimal", precision: 20, scale: 0 }, ["7"], ["a", ""]],
  ["year(4)", { kind: "int", bits: 16 }, ["1999", "0000", "2155"], ["99", "0", "1.5"]],
  ["double", { kind: "float", bits: 64 }, ["0.1"], ["-0", "9007199254740993", "1e-400"]],
  ["date", { kind: "date" }, ["2020-01-01"], ["24:00:00", "2020-01-01 12:00:00"]],
  ["datetime", { kind: "timestamp", zone: false }, ["2020-01-01 00:00:00"], ["10.0.0.1/8", "2020-01-01 00:00:00.5"]],
  ["time", { kind: "time", zone: false }, ["838:59:59", "-00:00:01"], ["101", "1.5", "00:00:00.5"]],
  ["char(3)", { kind: "string" }, ["ab", " a"], ["a "]],
  ["binary(3)", { kind: "bytes" }, ["abc"], ["ab", ""]],
  ["enum('a','B c','it''s','10')", { kind: "string" }, ["a", "B c", "it's", "10"], ["1", "b c", "A", "a "]],
  // As a server shows `A\b` and a line break.
  ["enum('A\\\\b','\\n')", { kind: "string" }, ["A\\b", "\n"], ["A\\\\b", "Ab", "\\n"]],
  ["set('a','b')", { kind: "string" }, ["", "a", "b,a"], ["1", "a,a", "a,c"]],
  [
    "json",
    { kind: "json", binary: true },
    ['{"a":1.5,"b":12}', '"9007199254740993.1"'],
    ['{"a":1,"a":2}', "[9007199254740993.1]"],
  ],
];

for (const [declared, type, kept, changed] of mysql)
  test(`MySQL's ${declared}: what it would change is told from what it keeps`, () => {
    const source: Column = { name: "v", type: { kind: "string" }, nullable: true, native: "text", untyped: true };
    const check = fitOf({ name: "v", type, nullable: true }, declared, source);
    expect(kept.filter((text) => check?.(text))).toEqual([]);
    expect(changed.filter((text) => !check?.(text))).toEqual([]);
  });

test("an object's doubled keys are seen at any depth, and a colon in a text is none", () => {
  const doubled = ['{"a":1,"a":2}', '[{"b":[{"a":1,"a":1}]}]', '{"__proto__":1,"__proto__":2}', '{"a":1,"\\u0061":2}'];
  const single = ['{"a":1,"b":{"a":2}}', '[{"a":":"},{"a":"\\":"}]', '{"__proto__":1}', '"{\\"a\\":1}"', "{}", "x{"];
  expect(doubled.filter((text) => !hasDoubledKeys(text))).toEqual([]);
  expect(single.filter(hasDoubledKeys)).toEqual([]);
});

test("JSON with texts of 10 MB is looked at as any other", () => {
  const long = 'x\\\\\\"'.repeat(2 << 20);
  const line = `{"a":"${long}","b":1.5}`;
  expect(memberCount(line)).toBe(2);
  expect(memberTexts(line).get("b")).toBe("1.5");
  expect(memberTexts(line).get("a")).toHaveLength(long.length + 2);
  const check = fitOf({ name: "v", type: { kind: "json", binary: true }, nullable: true }, "json", {
    ...{ name: "v", type: { kind: "string" }, nullable: true, native: "text", untyped: true },
  });
  expect([check?.(line), check?.(`["${long}",9007199254740993.1]`)]).toEqual([null, expect.stringContaining("digits")]);
});

test("what a text is made of does not matter to how long it is looked at", () => {
  const n = 100_000;
  const decimal: Column["type"] = { kind: "decimal", precision: 9, scale: 0 };
  const source: Column = { name: "v", type: { kind: "string" }, nullable: true, native: "text", untyped: true };
  const looks: readonly ((text: string) => unknown)[] = [
    ...["numeric(10,2)", "double precision", "interval"].map(
      (native) => checkOf({ type: typeOfNative(native), native }) as (text: string) => unknown,
    ),
    fitOf({ name: "v", type: { kind: "float", bits: 64 }, nullable: true }, "double", source) as () => unknown,
    (text) => jsonOf(text, { kind: "json", binary: false }),
    (text) => keyForm([{ name: "v", type: decimal, nullable: false }])([text]),
    (text) => writeValue(text, { name: "v", type: decimal, nullable: true }, "numeric"),
    (text) => normalise(text, { type: "number" }),
    (text) => normalise(text, { type: "integer" }),
  ];
  const began = performance.now();
  for (const text of [
    `${" ".repeat(n)}x`,
    `{\n"a":"${" ".repeat(n)}"}`,
    `.5${" ".repeat(n)}x`,
    `-${"0".repeat(n)}x`,
    `${"0".repeat(n)}x`,
    `1.${"0".repeat(n)}1`,
  ])
    for (const look of looks)
      try {
        look(text);
      } catch {}
  expect(performance.now() - began).toBeLessThan(within(3_000));
});

test.each([
  ["Data too long for column 'c' at row 3", 2, "c"],
  ["Column 'c' cannot be null", null, "c"],
  ["Incorrect date value: 'column 'x' at row 9' for column `db`.`k'o`.`d.o's` at row 2", 1, "d.o's"],
  [`Invalid JSON text: "Invalid value." at position 0 in value for column 't.j'.`, null, "j"],
  ["Check constraint 't_chk_1' is violated.", null, null],
  ["CONSTRAINT `t.c` failed for `db`.`t`", null, "c"],
  [
    "Cannot add or update a child row: a foreign key constraint fails (`db`.`t`, CONSTRAINT `x` FOREIGN KEY (`c`) REFERENCES `p` (`id`))",
    ...([null, "c"] as const),
  ],
])("MySQL's message %s is about a row and a column", (message, line, column) => {
  expect(placeIn(message)).toMatchObject({ line, column });
});
