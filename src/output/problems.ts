// Problems of files for people: place, what is wrong, the line with a mark under it, and the fix.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Problem } from "#contract/problem.ts";
import type { Paint } from "./paint.ts";
import { width } from "./width.ts";

/** Grouped by file. `folder` is what relative paths are relative to. */
export function problemsText(problems: readonly Problem[], paint: Paint, folder: string): string {
  const lines = new Map<string, readonly string[]>();
  const linesOf = (file: string): readonly string[] => {
    const path = resolve(folder, file);
    const known = lines.get(path) ?? linesIn(path);
    lines.set(path, known);
    return known;
  };
  return problems.map((problem) => problemText(problem, paint, linesOf(problem.file))).join("\n");
}

function problemText(problem: Problem, paint: Paint, lines: readonly string[]): string {
  const { file, line, column, pointer, code, message, fix } = problem;
  const place = paint.bold(`${file}:${line}:${column}`);
  const head = `${paint.red("✖")} ${place}  ${message} ${paint.dim(pointer === "" ? code : `${code} ${pointer}`)}`;
  return [head, ...excerpt(lines[line - 1] ?? "", line, column, paint), `  ${paint.green("fix:")} ${fix}`].join("\n");
}

const WIDTH = 100;

function excerpt(text: string, line: number, column: number, paint: Paint): string[] {
  if (text.trim() === "") return [];
  const from = Math.max(0, column - 1 - WIDTH / 2);
  const shown = text.slice(from, from + WIDTH).replaceAll("\t", " ");
  const label = `${line} | `;
  const ahead = label.length + width(shown.slice(0, column - 1 - from));
  return [`  ${paint.dim(label)}${shown}`, `  ${" ".repeat(ahead)}${paint.red("^")}`];
}

function linesIn(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch {
    return [];
  }
}
