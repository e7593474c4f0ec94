// The live log: a bounded ring of the last lines, read by position. Readers (the file, the terminal, followers) keep a position, not a
// queue: a slow one costs nothing, and what it missed is counted when it comes back. Lines are held as bytes, outside of the
// collector's heap: every one of them would be copied there twice before it is let go.
import { CURSOR_AT, type LogLine, type LogSink, parseLogLine } from "./log.ts";

export interface LogStream {
  readonly sink: LogSink;
  /** The position of the oldest held line, and the one that the next line will get. */
  bounds(): { readonly first: number; readonly next: number };
  /** Up to `max` held lines from a position on; `missed` counts those that are held no longer. */
  read(
    from: number,
    max: number,
  ): { readonly lines: readonly LogLine[]; readonly next: number; readonly missed: number };
  /** The newest held lines that match, oldest first, at most `max`. */
  newest(max: number, matches: (line: LogLine) => boolean): readonly LogLine[];
  /** All held lines from a position on as they are written down, each with its newline. */
  tail(from: number): { readonly bytes: readonly Buffer[]; readonly next: number; readonly missed: number };
  /** The position of the first line after a cursor; undefined when lines after it may be held no longer. */
  after(cursor: string): number | undefined;
  /** Calls `wake` after every line; returns how to stop. */
  subscribe(wake: () => void): () => void;
}

export interface LogStreamLimits {
  readonly lines: number;
  readonly bytes: number;
}

/** Some lines in a row. Never written again once it is full: readers may hold views of it. */
interface Slab {
  readonly bytes: Buffer;
  /** The position of its first line. */
  readonly position: number;
  /** Where its lines begin, and where the last one ends. */
  readonly starts: number[];
  end: number;
}

const SLAB = 64 * 1024;
const NEWLINE = 10;

/** @param limits how much the ring holds: by default 10,000 lines and 8 MB of text. */
export function createLogStream(limits: LogStreamLimits = { lines: 10_000, bytes: 8 * 1024 * 1024 }): LogStream {
  const wakes = new Set<() => void>();
  const slabs: Slab[] = [];
  let first = 0;
  let next = 0;
  let held = 0;

  const slabFor = (text: string): Slab => {
    const last = slabs.at(-1);
    // A UTF-16 unit takes three bytes at most: counting them exactly is seldom needed.
    const room = last ? last.bytes.length - last.end - 1 : 0;
    if (last && (text.length * 3 <= room || Buffer.byteLength(text) <= room)) return last;
    const size = Math.max(SLAB, Buffer.byteLength(text) + 1);
    const slab = { bytes: Buffer.allocUnsafeSlow(size), position: next, starts: [], end: 0 };
    slabs.push(slab);
    return slab;
  };

  const trim = () => {
    while (next - first > limits.lines || (held > limits.bytes && next - first > 1)) {
      const [oldest] = slabs as [Slab];
      held -= endOf(oldest, first) - startOf(oldest, first);
      first++;
      if (first === oldest.position + oldest.starts.length) slabs.shift();
    }
  };

  /** The place in `slabs` of a held position; readers are near the end. */
  const placeOf = (position: number): number => {
    let place = slabs.length - 1;
    while (place > 0 && (slabs[place] as Slab).position > position) place--;
    return place;
  };

  const lineAt = (position: number): LogLine => {
    const slab = slabs[placeOf(position)] as Slab;
    const text = slab.bytes.toString("utf8", startOf(slab, position), endOf(slab, position) - 1);
    return parseLogLine(text) ?? { cursor: "", text };
  };

  const cursorOf = (position: number): string => {
    const slab = slabs[placeOf(position)] as Slab;
    const start = startOf(slab, position) + CURSOR_AT;
    return slab.bytes.toString("latin1", start, start + 26);
  };

  return {
    sink({ text }) {
      const slab = slabFor(text);
      slab.starts.push(slab.end);
      const written = slab.bytes.write(text, slab.end) + 1;
      slab.end += written;
      slab.bytes[slab.end - 1] = NEWLINE;
      held += written;
      next++;
      trim();
      for (const wake of wakes) wake();
    },
    bounds: () => ({ first, next }),
    read(from, max) {
      const at = Math.max(from, first);
      const end = Math.min(next, at + max);
      const lines: LogLine[] = [];
      for (let position = at; position < end; position++) lines.push(lineAt(position));
      return { lines, next: at + lines.length, missed: at - from };
    },
    newest(max, matches) {
      const lines: LogLine[] = [];
      for (let position = next - 1; position >= first && lines.length < max; position--) {
        const line = lineAt(position);
        if (matches(line)) lines.push(line);
      }
      return lines.reverse();
    },
    tail(from) {
      const at = Math.max(from, first);
      const bytes: Buffer[] = [];
      if (at < next)
        for (const slab of slabs.slice(placeOf(at)))
          bytes.push(slab.bytes.subarray(slab.position < at ? startOf(slab, at) : 0, slab.end));
      return { bytes, next, missed: at - from };
    },
    after(cursor) {
      // Cursors ascend: by halving.
      let low = first;
      let high = next;
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        if (cursorOf(middle) <= cursor) low = middle + 1;
        else high = middle;
      }
      // The line with this cursor, or an earlier one, must still be held, or nothing may ever have been dropped.
      return low === first && first > 0 ? undefined : low;
    },
    subscribe(wake) {
      wakes.add(wake);
      return () => wakes.delete(wake);
    },
  };
}

function startOf({ starts, position, end }: Slab, line: number): number {
  return starts[line - position] ?? end;
}

function endOf(slab: Slab, line: number): number {
  return startOf(slab, line + 1);
}
