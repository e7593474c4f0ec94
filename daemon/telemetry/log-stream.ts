// The live log: a bounded ring of the last lines, and readers that follow it. A reader that comes back with its last cursor
// gets what it missed; what the ring no longer holds is counted and said, never silently skipped.
import type { LogLine, LogSink } from "./log.ts";

export interface LogStream {
  readonly sink: LogSink;
  /** Lines after `cursor` (all held lines without one), oldest first. `complete` is false when some are no longer held. */
  after(cursor?: string): { readonly lines: readonly LogLine[]; readonly complete: boolean };
  /** Calls `listener` for every line from now on; returns how to stop. */
  subscribe(listener: LogSink): () => void;
}

export interface LogStreamLimits {
  readonly lines: number;
  readonly bytes: number;
}

/** @param limits how much the ring holds: by default 10,000 lines and 8 MB of text. */
export function createLogStream(limits: LogStreamLimits = { lines: 10_000, bytes: 8 * 1024 * 1024 }): LogStream {
  const listeners = new Set<LogSink>();
  let held: LogLine[] = [];
  let first = 0;
  let bytes = 0;
  let dropped = false;

  const trim = () => {
    while (held.length - first > limits.lines || (bytes > limits.bytes && held.length - first > 1)) {
      bytes -= held[first]?.text.length ?? 0;
      first++;
      dropped = true;
    }
    // Moving the array once per thousand dropped lines keeps a push cheap.
    if (first > 1024) {
      held = held.slice(first);
      first = 0;
    }
  };

  return {
    sink(line) {
      held.push(line);
      bytes += line.text.length;
      trim();
      for (const listener of listeners) listener(line);
    },
    after(cursor) {
      const lines = held.slice(first);
      if (cursor === undefined) return { lines, complete: !dropped };
      const oldest = lines[0]?.cursor;
      return {
        lines: lines.slice(firstAfter(lines, cursor)),
        complete: oldest !== undefined && cursor >= oldest,
      };
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

// Cursors ascend: the index of the first line after `cursor`, by halving.
function firstAfter(lines: readonly LogLine[], cursor: string): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.cursor ?? "") <= cursor) low = middle + 1;
    else high = middle;
  }
  return low;
}
