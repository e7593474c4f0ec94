// The members of a JSON object as they were written: parsing and writing again would lose doubled keys, their order, escapes and digits.
import { stringEnd } from "#shared/json-text.ts";

const scalar = /[^,}\]\s]+/y;
const structure = /["{}[\]]/g;

/** Name -> the value's own text; of doubled names the last, as JSON.parse has it. The line must be a valid JSON object. */
export function memberTexts(line: string): Map<string, string> {
  const members = new Map<string, string>();
  let at = line.indexOf("{") + 1;
  for (;;) {
    at = line.indexOf('"', at);
    if (at < 0) return members;
    const nameEnd = stringEnd(line, at);
    const name = JSON.parse(line.slice(at, nameEnd)) as string;
    const start = skipSpace(line, line.indexOf(":", nameEnd) + 1);
    at = endOfValue(line, start);
    members.set(name, line.slice(start, at));
  }
}

/** How many members the object has, doubled names each time. The line must be a valid JSON object. */
export function memberCount(line: string): number {
  let depth = 0;
  let count = 0;
  for (let at = 0; at < line.length; at++) {
    const unit = line.charCodeAt(at);
    if (unit === 34) at = stringEnd(line, at) - 1;
    else if (unit === 123 || unit === 91) depth++;
    else if (unit === 125 || unit === 93) depth--;
    else if (unit === 58 && depth === 1) count++;
  }
  return count;
}

function endOfValue(line: string, at: number): number {
  if (line[at] === '"') return stringEnd(line, at);
  if (line[at] !== "{" && line[at] !== "[") {
    scalar.lastIndex = at;
    scalar.test(line);
    return scalar.lastIndex;
  }
  let depth = 0;
  structure.lastIndex = at;
  for (let found = structure.exec(line); found; found = structure.exec(line)) {
    if (found[0] === '"') structure.lastIndex = stringEnd(line, found.index);
    else depth += found[0] === "{" || found[0] === "[" ? 1 : -1;
    if (depth === 0) return structure.lastIndex;
  }
  return line.length;
}

function skipSpace(line: string, at: number): number {
  let next = at;
  while (line[next] === " " || line[next] === "\t" || line[next] === "\r") next++;
  return next;
}
