// What one page says about how pages go on.
import { expect, test } from "vitest";
import { paginations, recordPaths } from "#client/connectors/findings.ts";

const url = "https://api.example.com/v1/items";
const ways = (body: unknown, headers: Record<string, string> = {}) => paginations({ url, headers, body }, 10, "id");

test("counters keep the names that the vendor gives them, and begin where it does", () => {
  expect(ways({ issues: [], startAt: 0, maxResults: 50, total: 99 })).toEqual([
    { type: "offset", parameter: "startAt", size: 50 },
  ]);
  expect(ways({ content: [], pageable: { pageNumber: 0 }, totalElements: 99 })).toEqual([
    { type: "page", parameter: "page", size: 10, start: 0 },
    { type: "page", parameter: "pageNumber", size: 10, start: 0 },
  ]);
  expect(ways({ items: [], current_page: null, total: 5 }).map(({ type }) => type)).toEqual(["page", "page", "offset"]);
});

test("a cursor may stand in a header, or be the last record's key", () => {
  expect(ways([], { "x-next-cursor": "abc" })[0]).toEqual({
    type: "header",
    name: "x-next-cursor",
    parameter: "cursor",
  });
  expect(ways({ data: [], has_more: true })[0]).toEqual({
    ...{ type: "last", field: "id", more: ["has_more"], parameter: "starting_after" },
  });
  expect(ways({ data: [], has_more: false }).some(({ type }) => type === "last")).toBe(false);
});

test("an empty list is a list, where its name says so; a record with an empty list is a record", () => {
  expect(recordPaths({ data: [], total: 0 })).toEqual([["data"]]);
  expect(recordPaths({ id: 1, tags: [] })).toEqual([[]]);
});
