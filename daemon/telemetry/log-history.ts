// The log before the ring: lines of the files on disk, oldest first, so that a reader who was away long, or across a restart,
// still gets every line once.
import { isJson } from "#shared/json-text.ts";
import { type LogLine, parseLogLine } from "./log.ts";
import type { LogFile } from "./log-file.ts";
import type { LogStream } from "./log-stream.ts";

export interface LogHistory {
  readonly stream: LogStream;
  /** Every line after the cursor ("" for the very first), up to now; from files where the ring does not reach. */
  since(cursor: string): AsyncGenerator<LogLine, { readonly position: number }>;
}

export interface LogHistorySource {
  readonly stream: LogStream;
  /** Absent where nothing is kept on disk (tests). */
  readonly file?: Pick<LogFile, "open"> | undefined;
}

const ROUNDS = 5;

export function createLogHistory({ stream, file }: LogHistorySource): LogHistory {
  return {
    stream,
    async *since(cursor) {
      let last = cursor;
      // Reading files takes time, in which the ring moves on: go on until the two meet.
      for (let round = 0; file !== undefined && round < ROUNDS; round++) {
        const { first } = stream.bounds();
        const oldest = stream.read(first, 1).lines[0]?.cursor ?? "~";
        if (last >= oldest) break;
        for await (const line of linesOf(file, last, oldest)) {
          last = line.cursor;
          yield line;
        }
        if (first === stream.bounds().first) break;
      }
      let position = stream.after(last) ?? stream.bounds().first;
      const end = stream.bounds().next;
      while (position < end) {
        const { lines, next } = stream.read(position, Math.min(500, end - position));
        if (lines.length === 0) break;
        yield* lines;
        position = next;
      }
      return { position };
    },
  };
}

async function* linesOf(file: Pick<LogFile, "open">, after: string, before: string): AsyncGenerator<LogLine> {
  const handles = await file.open();
  try {
    for (const handle of handles) {
      for await (const text of handle.readLines({ autoClose: false })) {
        const line = parseLogLine(text);
        // What a full disk or a power cut left of a line begins as one.
        if (line && line.cursor > after && line.cursor < before && isJson(text)) yield line;
      }
    }
  } finally {
    for (const handle of handles) await handle.close();
  }
}
