// The live log: a bounded ring of the last lines, read by position. Readers keep a position, not a queue: a slow one costs
// nothing, and what it missed is counted when it comes back.
import type { LogLine, LogSink } from "./log.ts";

export interface LogStream {
  readonly sink: LogSink;
  /** The position of the oldest held line, and the one that the next line will get. */
  bounds(): { readonly first: number; readonly next: number };
  /** Up to `max` held lines from a position on; `missed` counts those that are held no longer. */
  read(
    from: number,
    max: number,
  ): { readonly lines: readonly LogLine[]; readonly next: number; readonly missed: number };
  /** The position of the first line after a cursor; undefined when lines after it may be held no longer. */
  after(cursor: string): number | undefined;
  /** Calls `wake` after every line; returns how to stop. */
  subscribe(wake: () => void): () => void;
}

export interface LogStreamLimits {
  readonly lines: number;
  readonly bytes: number;
}

/** @param limits how much the ring holds: by default 10,000 lines and 8 MB of text. */
export function createLogStream(limits: LogStreamLimits = { lines: 10_000, bytes: 8 * 1024 * 1024 }): LogStream {
  const wakes = new Set<() => void>();
  let held: LogLine[] = [];
  /** Index of the oldest held line in `held`, and that line's position. */
  let start = 0;
  let first = 0;
  let bytes = 0;

  const trim = () => {
    while (held.length - start > limits.lines || (bytes > limits.bytes && held.length - start > 1)) {
      bytes -= held[start]?.text.length ?? 0;
      start++;
      first++;
    }
    // Moving the array once per thousand dropped lines keeps a line cheap.
    if (start > 1024) {
      held = held.slice(start);
      start = 0;
    }
  };

  return {
    sink(line) {
      held.push(line);
      bytes += line.text.length;
      trim();
      for (const wake of wakes) wake();
    },
    bounds: () => ({ first, next: first + held.length - start }),
    read(from, max) {
      const at = Math.max(from, first);
      const lines = held.slice(start + at - first, start + at - first + max);
      return { lines, next: at + lines.length, missed: at - from };
    },
    after(cursor) {
      const index = firstAfter(held, start, cursor);
      // The line with this cursor, or an earlier one, must still be held, or nothing may ever have been dropped.
      if (index === start && first > 0) return undefined;
      return first + index - start;
    },
    subscribe(wake) {
      wakes.add(wake);
      return () => wakes.delete(wake);
    },
  };
}

// Cursors ascend: the index of the first line after `cursor`, by halving.
function firstAfter(lines: readonly LogLine[], start: number, cursor: string): number {
  let low = start;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.cursor ?? "") <= cursor) low = middle + 1;
    else high = middle;
  }
  return low;
}
