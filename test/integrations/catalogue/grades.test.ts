import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { complaints, definitions, examineEach, gradesFile } from "./grades.ts";

test("the grades are what the examination gives: `npm run grades` writes them", { timeout: 120_000 }, async () => {
  const known = JSON.parse(readFileSync(gradesFile, "utf8")) as Record<string, string>;
  const { "": _made, ...grades } = known;
  const reports = await examineEach(definitions());
  const said = [...reports].flatMap(([id, report]) => (grades[id] === report.grade ? [] : complaints(id, report)));
  expect(said).toEqual([]);
  expect(Object.keys(grades).sort()).toEqual(definitions());
});
