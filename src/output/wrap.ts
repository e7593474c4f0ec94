// Sentences on a terminal: broken between words, so that none is torn apart at the edge.
import { stripVTControlCharacters } from "node:util";
import { width } from "./width.ts";

/** How many characters a line of the stream has; Infinity where it is no terminal: what is read by a program is never broken. */
export function columnsOf(stream: NodeJS.WriteStream): number {
  return (stream.isTTY === true && stream.columns) || Number.POSITIVE_INFINITY;
}

/** Breaks lines of more than `columns` characters and sets their rest in by two. What stands in backticks stays whole: it is there to be copied. */
export function wrap(text: string, columns: number): string {
  return text
    .split("\n")
    .map((line) => (shown(line) > columns ? broken(line, columns) : line))
    .join("\n");
}

function broken(line: string, columns: number): string {
  const [indent = ""] = /^ */.exec(line) ?? [];
  const lines: string[] = [];
  let current = "";
  for (const [piece, gap = "", word = ""] of line.matchAll(/(?<!\s)(\s*)((?:`[^`]*`|\S)+)/g)) {
    if (current !== "" && shown(current + piece) > columns) {
      lines.push(current);
      current = `${indent}  ${word}`;
    } else current += gap + word;
  }
  return [...lines, current].join("\n");
}

function shown(text: string): number {
  return width(stripVTControlCharacters(text));
}
