// A partition that the vendor refuses does not keep the others from being read: the read goes on, and fails once they were.
import { isMagicError, type MagicError } from "#contract/errors.ts";
import type { Context } from "../context.ts";

/** So many failures in a row end the read at once: the vendor is away, or refuses them all. */
const IN_A_ROW = 10;

export interface FailedPartitions {
  /** Reads one; what it is refused with is told at once, as others may wait for long, and kept for the end. */
  read<Event>(events: AsyncIterable<Event>): AsyncGenerator<Event>;
  /** Throws what the first one failed with. */
  end(): void;
}

export function failedPartitions({ signal, log }: Pick<Context, "signal" | "log">): FailedPartitions {
  let first: MagicError | undefined;
  let row = 0;
  return {
    async *read(events) {
      try {
        yield* events;
        row = 0;
      } catch (error) {
        if (signal.aborted || !refused(error)) throw error;
        first ??= error;
        if (++row >= IN_A_ROW) throw first;
        log("warn", `a partition is left out, so that the read will fail: ${error.message}`);
      }
    },
    end() {
      if (first) throw first;
    },
  };
}

/** What answers come to. */
const REFUSALS: readonly string[] = ["upstream_error", "credentials_rejected", "not_found"];

function refused(error: unknown): error is MagicError {
  return isMagicError(error) && REFUSALS.includes(error.code);
}
