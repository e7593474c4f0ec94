import { expect, test } from "vitest";
import { rowsOf, tableOf } from "#daemon/integrations/connectors/declarative/rows.ts";

const schema = {
  type: "object",
  properties: {
    id: { type: "integer" },
    price: { type: ["null", "number"] },
    ok: { type: "boolean" },
    at: { type: "string", format: "date-time" },
    day: { type: "string", format: "date" },
    tags: { type: "array" },
    name: { type: "string" },
  },
};
const table = tableOf(schema, { primaryKey: [["id"]], cursorField: "at" });

test("records become rows by the schema; fields that it does not name are kept together", () => {
  const record = {
    id: "9007199254740993",
    price: 12.1,
    ok: true,
    at: "2024-05-06T07:08:09.1234560+02:00",
    day: "2024-05-06",
    tags: ["a"],
    name: "x",
    more: { b: 1 },
  };
  expect(rowsOf([record], table, table)).toMatchObject({
    rows: [
      [
        "9007199254740993",
        "12.1",
        "true",
        "2024-05-06 05:08:09.123456+00",
        "2024-05-06",
        '["a"]',
        "x",
        '{"more":{"b":1}}',
      ],
    ],
    rejects: [],
  });
});

test.each([
  ["id", { id: 1.5 }, /1.5 is no integer/],
  ["price", { id: 1, price: "much" }, /is no number/],
  ["ok", { id: 1, ok: "perhaps" }, /is no boolean/],
  ["at", { id: 1, at: "yesterday" }, /is no time/],
  ["at", { id: 1, at: "2024-05-06T07:08:09.1234567Z" }, /is no time/],
  ["at", { id: 1, at: "05/02/2024 10:00:00" }, /is no time/],
  ["day", { id: 1, day: "2024-05-06T10:00:00Z" }, /is no date/],
  ["name", { id: 1, name: "a\0b" }, /NUL/],
  ["tags", { id: 1, tags: ["a\0b"] }, /NUL/],
])("a value that %s cannot hold is a reject with its reason", (column, record, reason) => {
  const { rows, rejects } = rowsOf([record], table, table);
  expect(rows).toEqual([]);
  expect(rejects).toEqual([{ key: String(record.id), column, reason: expect.stringMatching(reason) }]);
});
