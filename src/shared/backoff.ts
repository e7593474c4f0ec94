// How long to wait before what failed is tried again. Nobody is waited for here.

/** Milliseconds: `first` after no attempt, twice as long after each, `longest` at most. */
export function backoff(attempts: number, first: number, longest: number): number {
  return Math.min(longest, first * 2 ** attempts);
}

/** Half of it up to the whole, so that those who failed together do not come again together. */
export function jittered(ms: number, random: () => number = Math.random): number {
  return ms * (0.5 + random() / 2);
}
