import { expect, test } from "vitest";
import { rfc3339 } from "#shared/clock.ts";
import { newId, sortable } from "#shared/ids.ts";

test("ids carry their prefix and sort in the order in which they were made", () => {
  const ids = Array.from({ length: 5000 }, () => newId("conn"));
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids[0]).toMatch(/^conn_[0-9a-z]{26}$/);
});

test("ids of different prefixes do not show in each other, and sort although the clock goes back", () => {
  const ahead = Date.now() + 60_000;
  const [first, second, third] = [newId("webhook", ahead), newId("wh", ahead - 1_000), newId("dev-", ahead)] as const;
  expect(second).toMatch(/^wh_[0-9a-z]{26}$/);
  expect(third).toMatch(/^dev-[0-9a-z]{26}$/);
  const digits = [first, second, third].map((id) => id.slice(-26));
  expect([...digits, sortable(0)].sort().slice(0, 3)).toEqual(digits);
  expect(sortable(ahead + 1) > (digits[2] ?? "")).toBe(true);
});

test("a moment is written as Date writes it, whatever was written before", () => {
  const moments = [
    0, 999, 1_000, 7, 1_700_000_000_123, 1_700_000_000_123.9, 1_700_000_000_009, -1, 253_402_300_800_000,
  ];
  for (const ms of [...moments, ...moments.toReversed()])
    expect(rfc3339(ms)).toBe(new Date(Math.floor(ms)).toISOString());
  expect(() => rfc3339(Number.NaN)).toThrow();
  expect(rfc3339(1)).toBe("1970-01-01T00:00:00.001Z");
});
