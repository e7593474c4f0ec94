// The answer of a keyed call while it is being made: kept whole, and read by any number of clients at their own pace. The upstream is
// read to its end whether anyone listens or not.
import { DONE } from "#daemon/gateway/format/sse.ts";
import type { FrameSink } from "#daemon/gateway/providers/adapter.ts";

export interface Recording {
  /** Takes frames without ever asking for a pause. */
  readonly sink: FrameSink;
  /** Delivers all frames from the first on to one reader. Resolves when the last one was written, or `over` says that none comes. */
  read(to: FrameSink): Promise<void>;
  /** Withheld until `release`: the frame that tells a client that the answer is complete. */
  frames(): readonly Uint8Array[];
  /** No more frames will come; lets the readers have the last one. */
  finish(): void;
  /** Puts an error event in the place of the withheld frames: the answer could not be stored. */
  replaceEnd(frame: Uint8Array): void;
  /** It has become larger than what is kept: its end is missing. */
  overflowed(): boolean;
}

const LAST = Buffer.from(DONE);
const ERROR = Buffer.from('data: {"error"');

/** A recording of at most so many bytes whose end is withheld from its readers until `finish`. */
export function createRecording(most: number): Recording {
  const kept: Uint8Array[] = [];
  let shown = 0;
  let bytes = 0;
  let finished = false;
  let overflowed = false;
  let waiters: (() => void)[] = [];
  const wake = () => {
    const woken = waiters;
    waiters = [];
    for (const resolve of woken) resolve();
  };

  return {
    overflowed: () => overflowed,
    sink: {
      write(frame) {
        const copy = typeof frame === "string" ? Buffer.from(frame) : Buffer.from(frame);
        bytes += copy.length;
        overflowed ||= bytes > most;
        if (overflowed) return true;
        kept.push(copy);
        // Once an end was seen, everything behind it is withheld as well.
        if (shown === kept.length - 1 && !endsAnswer(copy)) {
          shown = kept.length;
          wake();
        }
        return true;
      },
      drained: async () => {},
    },
    async read(to) {
      for (let next = 0; ; ) {
        while (next < shown) {
          const frame = kept[next++];
          if (frame && !to.write(frame)) await to.drained();
        }
        if (finished) return;
        await new Promise<void>((resolve) => waiters.push(resolve));
      }
    },
    frames: () => kept,
    finish() {
      shown = kept.length;
      finished = true;
      wake();
    },
    replaceEnd(frame) {
      kept.length = shown;
      kept.push(frame);
    },
  };
}

function endsAnswer(frame: Buffer): boolean {
  return frame.subarray(-LAST.length).equals(LAST) || frame.subarray(0, ERROR.length).equals(ERROR);
}
