import { expect, test } from "vitest";
import { codeReport, knownGrades } from "./grades.ts";

test.each(["mysql", "postgres"] as const)("%s has passed its examination", { timeout: 120_000 }, async (id) => {
  expect((await codeReport(id)).grade).toBe(knownGrades()[id]);
});
