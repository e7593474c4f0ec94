// The value that a fake model answers with, and that `magic dev` shows as an example.
import { expect, test } from "vitest";
import { sampleOf } from "#sdk/testing/sample.ts";

test("a schema that refers to itself has a sample that ends, without what would lead on", () => {
  const tree = { left: { $ref: "#" }, right: { $ref: "#" }, children: { type: "array", items: { $ref: "#" } } };
  const either = { anyOf: [{ $ref: "#" }, { type: "string" }] };
  const schema = { type: "object", properties: { name: { type: "string" }, ...tree, either, never: false } };
  expect(sampleOf(schema)).toEqual({ name: "text", children: [], either: "text" });
});

test("definitions that double with each level, and bounds without measure, end soon", () => {
  const level = (n: number) => ({ properties: { a: { $ref: `#/$defs/${n}` }, b: { $ref: `#/$defs/${n}` } } });
  const $defs = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [String(n), level(n + 1)]));
  expect(JSON.stringify(sampleOf({ ...level(0), $defs })).length).toBeLessThan(100_000);
  expect(sampleOf({ type: "array", minItems: 1e9, items: { const: 1 } })).toHaveLength(999);
});
