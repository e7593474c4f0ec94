// Bars for a terminal: a label, a bar in proportion to the largest, a text.
import { oneLine, type Paint } from "./paint.ts";
import { letters, width } from "./width.ts";

export interface Bar {
  readonly label: string;
  readonly size: number;
  readonly text: string;
}

const WIDTH = 32;
const LEAST_WIDTH = 4;
const MAX_LABEL = 40;
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** Bars are shorter where they would not fit into the columns. */
export function printChart(given: readonly Bar[], paint: Paint, columns: number): string {
  // Of others' labels only this reaches a terminal: it is what takes room.
  const bars = given.map((bar) => ({ ...bar, label: oneLine(bar.label) }));
  const largest = most(bars, ({ size }) => size);
  const labels = Math.min(
    MAX_LABEL,
    most(bars, ({ label }) => width(label)),
  );
  const texts = most(bars, ({ text }) => text.length);
  const room = Math.max(LEAST_WIDTH, Math.min(WIDTH, columns - labels - texts - 4));
  return bars
    .map(({ label, size, text }) => {
      const bar = barOf(largest > 0 ? size / largest : 0, room);
      return `${fit(label, labels)}  ${paint.cyan(bar)}${" ".repeat(room - [...bar].length)}  ${text}`;
    })
    .join("\n");
}

// One by one: what is spread are arguments, of which there cannot be a hundred thousand.
function most(bars: readonly Bar[], of: (bar: Bar) => number): number {
  return bars.reduce((found, bar) => Math.max(found, of(bar)), 0);
}

function barOf(share: number, width: number): string {
  const parts = Math.round(share * width * 8);
  return "█".repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? "");
}

function fit(label: string, columns: number): string {
  const line = label.replace(/\s/g, " ");
  const room = columns - width(line);
  if (room >= 0) return line + " ".repeat(room);
  let cut = "";
  for (const letter of letters(line)) {
    if (width(cut + letter) >= columns) break;
    cut += letter;
  }
  return `${cut}…${" ".repeat(columns - 1 - width(cut))}`;
}
