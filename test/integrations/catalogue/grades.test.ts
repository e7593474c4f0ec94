import { expect, test } from "vitest";
import { codeConnectorIds } from "./code-exam.ts";
import { examine } from "./exam.ts";
import { codeReport, complaints, definitions, examineEach, knownGrades } from "./grades.ts";

test("the grades are what the examination gives: `npm run grades` writes them", { timeout: 300_000 }, async () => {
  const grades = knownGrades();
  const reports = await examineEach(definitions());
  const said = [...reports].flatMap(([id, report]) => (grades[id] === report.grade ? [] : complaints(id, report)));
  expect(said).toEqual([]);
  expect(Object.keys(grades).sort()).toEqual([...definitions(), ...codeConnectorIds].sort());
});

// PostgreSQL and MySQL in grades.deep.test.ts: their servers take their time.
test.each(["csv", "http", "jsonl", "parquet", "sqlite"] as const)("%s has passed its examination", async (id) => {
  expect(await codeReport(id)).toMatchObject({ grade: knownGrades()[id], problem: null });
});

const faults: readonly (readonly [fault: string, from: string, to: string, said: RegExp])[] = [
  ["a parameter of another name", "field_name: limit", "field_name: size", /parameter size is not known/],
  ["pages larger than the vendor gives", "page_size: 50", "page_size: 51", /a page has 1 to 50 records/],
  ["no next page", "get('next', {})", "get('more', {})", /records: .* is missing; 50 of \d+ came/],
  ["records elsewhere", "field_path: [_data]", "field_path: [data]", /records: .* is missing; 0 of/],
  ["everything read again", "lookback_window: PT1S", "lookback_window: P90D", /asked for \d+ records again/],
  ["a boundary lost", "lookback_window: PT1S", "lookback_window: -PT2H", /lost .* a new record/],
  ["a wait of its own", "header: Retry-After", "header: content-length", /limit: .* s were waited, 7 s/],
  ["another type than the vendor's", "email: { type: [string", "email: { type: [integer", /email does not hold/],
  ["no key", "primary_key: [id]", "primary_key: []", /there is no primary key/],
  ["a grant of another kind", "grant_type: client_credentials", "grant_type: password", /token endpoint answered 400/],
];

test("the examination finds faults", { timeout: 300_000 }, async () => {
  for (const [fault, from, to, said] of faults) {
    const report = await examine("personio", (text) => text.replaceAll(from, to));
    expect(report.grade, fault).toBe("G0");
    expect(complaints("personio", report).join("\n"), fault).toMatch(said);
  }
});
