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
  const largest = Math.max(...bars.map(({ size }) => size), 0);
  const width = Math.min(MAX_LABEL, Math.max(...bars.map(({ label }) => [...label].length), 0));
  const texts = Math.max(...bars.map(({ text }) => text.length), 0);
  const room = Math.max(LEAST_WIDTH, Math.min(WIDTH, columns - width - texts - 4));
  return bars
    .map(({ label, size, text }) => {
      const bar = barOf(largest > 0 ? size / largest : 0, room);
      return `${fit(label, width)}  ${paint.cyan(bar)}${" ".repeat(room - [...bar].length)}  ${text}`;
    })
    .join("\n");
}

function barOf(share: number, width: number): string {
  const parts = Math.round(share * width * 8);
  return "█".repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? "");
}

function fit(label: string, width: number): string {
  const letters = [...label.replace(/\s/g, " ")];
  return letters.length > width
    ? `${letters.slice(0, width - 1).join("")}…`
    : label + " ".repeat(width - letters.length);
}
