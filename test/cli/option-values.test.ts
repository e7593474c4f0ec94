// What options take for a time, whatever Date.parse would make of it.
import { expect, test } from "vitest";
import { timeOf } from "#commands/option-values.ts";

test("a day or a time is taken, a day that no calendar has is not", () => {
  expect(timeOf(undefined, "--since")).toBeUndefined();
  expect(timeOf("2028-02-29", "--since")).toBe("2028-02-29T00:00:00.000Z");
  expect(timeOf("2026-02-28T23:30:00-01:00", "--since")).toBe("2026-03-01T00:30:00.000Z");
  for (const text of ["2026-02-29", "2026-02-30T00:00:00Z", "2026-04-31", "2026-13-01", "2026-00-10", "yesterday", ""])
    expect(() => timeOf(text, "--since"), text).toThrow("--since takes a time");
});
