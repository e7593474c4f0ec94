import { expect, test } from "vitest";
import { folder, readStreams } from "./read-twice.ts";

test.skipIf(!folder)("at least 95 % of all streams of public manifests are read twice as they should be", async () => {
  const { total, problems } = await readStreams(() => true);
  expect(total).toBeGreaterThan(1100);
  expect(problems.length / total, problems.join("\n")).toBeLessThan(0.05);
});
