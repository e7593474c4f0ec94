import { expect, test } from "vitest";
import { typeOfNative } from "#daemon/integrations/connectors/postgres/types.ts";
import { checkDrift, holds, planChanges } from "#daemon/integrations/engine/evolution.ts";
import type { Column } from "#daemon/integrations/engine/types.ts";

const column = (native: string, name = "c"): Column => ({ name, native, type: typeOfNative(native), nullable: true });

test("a widening keeps every value, anything else is none", () => {
  const yes = [
    ["bigint", "integer"],
    ["numeric", "bigint"],
    ["numeric(19,0)", "bigint"],
    ["numeric(12,4)", "numeric(10,2)"],
    ["double precision", "real"],
    ["text", "character varying(5)"],
    ["character varying(9)", "character varying(5)"],
    ["timestamp without time zone", "timestamp(3) without time zone"],
    ["bigint[]", "integer[]"],
    ["jsonb", "json"],
  ] as const;
  for (const [into, from] of yes) expect([into, from, holds(column(into), column(from))]).toEqual([into, from, true]);
  const no = [
    ["integer", "bigint"],
    ["numeric(18,0)", "bigint"],
    ["numeric(12,-2)", "integer"],
    ["numeric(10,2)", "numeric(10,4)"],
    ["numeric(10,2)", "numeric"],
    ["real", "double precision"],
    ["double precision", "bigint"],
    ["character varying(4)", "character varying(5)"],
    ['"char"', "text"],
    ["name", "text"],
    ["timestamp with time zone", "timestamp without time zone"],
    ["timestamp(3) without time zone", "timestamp without time zone"],
    ["text", "integer"],
    ["uuid", "text"],
  ] as const;
  for (const [into, from] of no) expect([into, from, holds(column(into), column(from))]).toEqual([into, from, false]);
});

test("a table is altered only where it must be, and refuses what would change values", () => {
  const existing = [column("integer", "a"), column("text", "b")];
  expect(
    planChanges([column("bigint", "a"), column("integer", "b"), column("date", "c")], existing, "t"),
  ).toMatchObject({
    add: [{ name: "c" }],
    widen: [{ name: "a", native: "bigint" }],
  });
  expect(() => planChanges([column("text", "a")], existing, "t")).toThrow(/cannot take/);
});

test("drift since the last run is named, columns that are no longer asked for are none", () => {
  const before = { columns: [column("integer", "a"), column("text", "b")], primaryKey: [] };
  const after = { columns: [column("bigint", "a")], primaryKey: [] };
  expect(() => checkDrift(before, after, null, "t")).toThrow(/"b" of t has gone/);
  expect(() => checkDrift(before, after, ["a"], "t")).not.toThrow();
  expect(() =>
    checkDrift(before, { columns: [column("text", "a"), column("text", "b")], primaryKey: [] }, null, "t"),
  ).toThrow(/was integer and is now text/);
});
