import { expect, test } from "vitest";
import { newId } from "#shared/ids.ts";

test("ids carry their prefix and sort in the order in which they were made", () => {
  const ids = Array.from({ length: 5000 }, () => newId("conn"));
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids[0]).toMatch(/^conn_[0-9a-z]{26}$/);
});
