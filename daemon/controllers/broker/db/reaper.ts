// Ends what a server still does for sessions that were given up. It notices that its client has gone when it next writes to it: until
// then the statement runs on, its connection counts, and a controller of short calls would use up all that the server has.

/** Resolves when the session of this number is ended, or cannot be. One connection at a time is made for all that wait. */
export type Reap = (id: number) => Promise<void>;

export function openReaper(end: (ids: readonly number[]) => Promise<unknown>): Reap {
  let waiting: number[] = [];
  let next: Promise<void> | null = null;
  let under: Promise<unknown> = Promise.resolve();
  return (id) => {
    waiting.push(id);
    next ??= under.then(async () => {
      const ids = waiting;
      waiting = [];
      next = null;
      // Where it fails, the server's own limit of a statement's time is left.
      under = end(ids).catch(() => {});
      await under;
    });
    return next;
  };
}
