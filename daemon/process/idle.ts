// Ends a daemon that nobody uses. Only for one that a command started by itself: what a user started, a user stops.
export interface IdleWatch {
  /** Milliseconds since the last request, on a monotonic clock. */
  readonly idleFor: () => number;
  /** What must go on without requests: schedules, streams, open answers. The name of one, or undefined. */
  readonly heldBy: () => Promise<string | undefined>;
  readonly afterMs: number;
  readonly end: () => void;
}

/** Returns how to stop watching. */
export function watchIdle({ idleFor, heldBy, afterMs, end }: IdleWatch): () => void {
  const timer = setInterval(
    () => {
      if (idleFor() < afterMs) return;
      // What cannot be found out counts as a reason to stay.
      heldBy().then(
        (holder) => {
          if (holder === undefined && idleFor() >= afterMs) end();
        },
        () => undefined,
      );
    },
    Math.min(30_000, Math.max(50, afterMs / 4)),
  );
  timer.unref();
  return () => clearInterval(timer);
}
