// Bars for a terminal: a label, a bar in proportion to the largest, a text.
import type { Paint } from "./paint.ts";

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
export function printChart(bars: readonly Bar[], paint: Paint, columns: number): string {
  const largest = most(bars, ({ size }) => size);
  const width = Math.min(
    MAX_LABEL,
    most(bars, ({ label }) => [...label].length),
  );
  const texts = most(bars, ({ text }) => text.length);
  const room = Math.max(LEAST_WIDTH, Math.min(WIDTH, columns - width - texts - 4));
  return bars
    .map(({ label, size, text }) => {
      const bar = barOf(largest > 0 ? size / largest : 0, room);
      return `${fit(label, width)}  ${paint.cyan(bar)}${" ".repeat(room - [...bar].length)}  ${text}`;
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

function fit(label: string, width: number): string {
  const letters = [...label.replace(/\s/g, " ")];
  return letters.length > width
    ? `${letters.slice(0, width - 1).join("")}…`
    : letters.join("") + " ".repeat(width - letters.length);
}
