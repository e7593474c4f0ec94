// A bounded number of sessions, handed out by turns to those who ask: the many calls of one controller do not hold up the few of another.
import { MagicError } from "#contract/errors.ts";

export interface Slots {
  /** Waits for a free one, in the line of `whose`. Throws MagicError `timeout` when `signal` is aborted. */
  take(signal: AbortSignal, whose?: string): Promise<void>;
  /** It goes to who has waited longest in the line whose turn it is. */
  give(): void;
}

export function openSlots(most: number): Slots {
  let free = most;
  /** The next one's line is the first. */
  const lines = new Map<string, Set<() => void>>();
  return {
    take(signal, whose = "") {
      // A handler whose caller has left goes on, and may try for as long as it has.
      if (signal.aborted) return Promise.reject(new MagicError("timeout", "the invocation has ended"));
      if (free > 0) {
        free--;
        return Promise.resolve();
      }
      const line = lines.get(whose) ?? new Set();
      lines.set(whose, line);
      return new Promise((resolve, reject) => {
        const enter = (): void => {
          signal.removeEventListener("abort", leave);
          resolve();
        };
        const leave = (): void => {
          line.delete(enter);
          if (line.size === 0) lines.delete(whose);
          reject(new MagicError("timeout", "no database session became free in time"));
        };
        signal.addEventListener("abort", leave, { once: true });
        line.add(enter);
      });
    },
    give() {
      for (const [whose, line] of lines) {
        lines.delete(whose);
        const [next] = line;
        if (next) line.delete(next);
        if (line.size > 0) lines.set(whose, line);
        return next?.();
      }
      free++;
    },
  };
}
