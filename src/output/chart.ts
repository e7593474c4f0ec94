// Bars for a terminal: a label, a bar in proportion to the largest, a text.
import type { Paint } from "./paint.ts";

export interface Bar {
  readonly label: string;
  readonly size: number;
  readonly text: string;
}

const WIDTH = 32;
const MAX_LABEL = 40;
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

export function printChart(bars: readonly Bar[], paint: Paint): string {
  const largest = Math.max(...bars.map(({ size }) => size), 0);
  const width = Math.min(MAX_LABEL, Math.max(...bars.map(({ label }) => [...label].length), 0));
  return bars
    .map(({ label, size, text }) => {
      const bar = barOf(largest > 0 ? size / largest : 0);
      return `${fit(label, width)}  ${paint.cyan(bar)}${" ".repeat(WIDTH - [...bar].length)}  ${text}`;
    })
    .join("\n");
}

function barOf(share: number): string {
  const parts = Math.round(share * WIDTH * 8);
  return "█".repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? "");
}

function fit(label: string, width: number): string {
  const letters = [...label.replace(/\s/g, " ")];
  return letters.length > width
    ? `${letters.slice(0, width - 1).join("")}…`
    : label + " ".repeat(width - letters.length);
}
