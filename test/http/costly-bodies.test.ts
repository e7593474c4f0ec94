// Bodies that would cost too much to parse: refused by what they hold, not by how long it takes.
import { expect, test } from "vitest";
import { parseBody } from "#daemon/http/read-body.ts";

const parsed = (text: string): unknown => parseBody(Buffer.from(text), 128, JSON.parse);
const object = (keys: number): string =>
  `{${Array.from({ length: keys }, (_, at) => `"${at.toString(36)}":1`).join()}}`;

test.each([
  ["a million keys", () => object(1_000_000), /different keys/],
  ["five million numbers", () => `[${"1,".repeat(5_000_000)}1]`, /values/],
  ["five million times one key", () => `{${'"a":1,'.repeat(5_000_000)}"a":1}`, /values/],
  ["a million lists", () => `[${"[],".repeat(1_000_000)}[]]`, /objects and arrays/],
  ["a deep list", () => `${"[".repeat(200_000)}${"]".repeat(200_000)}`, /levels/],
])("%s are too many", (_what, text, reason) => {
  expect(() => parsed(text())).toThrow(reason);
});

test("many rows with the same keys, many keys and many numbers are read", () => {
  const rows = Array.from({ length: 100_000 }, (_, id) => ({ id, name: `n${id}`, 'a "b": c,': [id, id], ok: true }));
  const text = JSON.stringify(rows);
  expect(JSON.stringify(parsed(text)) === text).toBe(true);
  expect(Object.keys(parsed(object(200_000)) as object)).toHaveLength(200_000);
  expect(parsed(`[${"1,".repeat(3_000_000)}1]`)).toHaveLength(3_000_001);
});
