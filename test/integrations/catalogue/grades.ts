// The grades of the catalogue: every definition examined.
//   npm run grades                  writes daemon/integrations/catalogue/grades.json
//   npm run grades -- hubspot ...   examines these only, says what is wrong, writes nothing
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { definitionsFolder } from "#daemon/integrations/catalogue/catalogue.ts";
import { codeConnectorIds, examineCode } from "./code-exam.ts";
import { examine, type Report } from "./exam.ts";

const AT_ONCE = 6;

export const gradesFile = join(definitionsFolder(), "grades.json");

/** As they are written down. */
export function knownGrades(): Record<string, string> {
  const { "": _made, ...grades } = JSON.parse(readFileSync(gradesFile, "utf8")) as Record<string, string>;
  return grades;
}

export function definitions(): string[] {
  const files = readdirSync(definitionsFolder()).filter((file) => file.endsWith(".yaml"));
  return files.map((file) => basename(file, ".yaml")).sort();
}

/** By id, in the order of ids. */
export async function examineEach(ids: readonly string[]): Promise<Map<string, Report>> {
  const reports = new Map<string, Report>();
  const waiting = [...ids];
  const one = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const failed = (error: Error): Report => ({ grade: "G0", streams: {}, problem: error.message });
      reports.set(id, await examine(id).catch(failed));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return new Map(ids.map((id) => [id, reports.get(id) as Report]));
}

/** The connectors in code; where this machine lacks a server, what is known. */
export async function codeReport(id: (typeof codeConnectorIds)[number]): Promise<Report> {
  const wrong = await examineCode(id);
  if (wrong === undefined)
    return { grade: knownGrades()[id] === "G1" ? "G1" : "G0", streams: {}, problem: "this machine has no such server" };
  return { grade: wrong === null ? "G1" : "G0", streams: {}, problem: wrong };
}

// One line a connector, each ending in a comma: lines of different branches then merge (see .gitattributes).
export function gradesText(reports: ReadonlyMap<string, Report>): string {
  const sorted = [...reports].sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = sorted.map(([id, { grade }]) => `  ${JSON.stringify(id)}: ${JSON.stringify(grade)},`);
  return `{\n${lines.join("\n")}\n  "": "made by npm run grades"\n}\n`;
}

/** What is wrong, a line each. */
export function complaints(id: string, { grade, streams, problem }: Report): string[] {
  const failed = Object.entries(streams).filter(([, wrong]) => wrong !== null);
  return [
    `${id}: ${grade}${problem === null ? "" : `, ${problem}`}`,
    ...failed.map(([stream, wrong]) => `  ${stream}: ${wrong}`),
  ];
}

if (import.meta.main) {
  const asked = process.argv.slice(2);
  const isCode = (id: string): id is (typeof codeConnectorIds)[number] => codeConnectorIds.some((code) => code === id);
  const reports = await examineEach(asked.length > 0 ? asked.filter((id) => !isCode(id)) : definitions());
  for (const id of asked.length > 0 ? asked.filter(isCode) : codeConnectorIds) reports.set(id, await codeReport(id));
  for (const [id, report] of reports) process.stdout.write(`${complaints(id, report).join("\n")}\n`);
  if (asked.length === 0) writeFileSync(gradesFile, gradesText(reports));
}
