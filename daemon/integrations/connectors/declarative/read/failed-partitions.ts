// A partition that the vendor refuses does not keep the others from being read: the read goes on, and fails once they were.
import { isMagicError } from "#contract/errors.ts";

/** So many failures in a row end the read at once: the vendor is away, or refuses them all. */
const IN_A_ROW = 10;

export interface FailedPartitions {
  /** Reads one; what it fails with is kept for the end, where it says nothing of the others. */
  read<Event>(events: AsyncIterable<Event>): AsyncGenerator<Event>;
  /** Throws what the first one failed with. */
  end(): void;
}

export function failedPartitions(signal: AbortSignal): FailedPartitions {
  let first: { readonly error: unknown } | undefined;
  let row = 0;
  return {
    async *read(events) {
      try {
        yield* events;
        row = 0;
      } catch (error) {
        if (signal.aborted || !refused(error)) throw error;
        first ??= { error };
        if (++row >= IN_A_ROW) throw first.error;
      }
    },
    end() {
      if (first) throw first.error;
    },
  };
}

/** What answers come to. */
const REFUSALS: readonly string[] = ["upstream_error", "credentials_rejected", "not_found"];

function refused(error: unknown): boolean {
  return isMagicError(error) && REFUSALS.includes(error.code);
}
