// Pages of what is in memory.
import { expect, test } from "vitest";
import { pageByName, pageInMemory } from "#daemon/storage/list.ts";

const all = ["b", "d", "f", "h"];

test("pages in the order of names go on behind a name that is gone, both ways", () => {
  const page = (options: object) => pageByName(all, options, (name) => name);
  expect(page({ limit: 2 })).toEqual({ object: "list", data: ["b", "d"], has_more: true, next_cursor: "d" });
  expect(page({ limit: 2, starting_after: "e" })).toMatchObject({ data: ["f", "h"], has_more: false });
  expect(page({ limit: 1, ending_before: "e" })).toMatchObject({ data: ["d"], has_more: true, next_cursor: "d" });
  expect(page({ starting_after: "z" })).toMatchObject({ data: [], next_cursor: null });
  expect(() => page({ starting_after: "a", ending_before: "z" })).toThrow(
    expect.objectContaining({ code: "validation_failed" }),
  );
});

test("without such an order a name that is gone begins at the front", () => {
  const page = (options: object) => pageInMemory(["d", "b"], options, (name) => name);
  expect(page({ starting_after: "d" }).data).toEqual(["b"]);
  expect(page({ starting_after: "gone" }).data).toEqual(["d", "b"]);
});
