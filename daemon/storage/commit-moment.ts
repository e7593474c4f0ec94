// What nobody waits for is stored at common moments: calls of storage made in one step travel as one message and share a commit, which
// costs a busy daemon more than the rows in it.

/** The longest that anything waits for the next moment. */
const EVERY_MS = 500;

let waiting = new Set<() => void>();

/** Runs it once at the next common moment, however often it is asked for, in one step with whatever else waits for that. It must not throw. */
export function atCommitMoment(run: () => void): void {
  if (waiting.size === 0) setTimeout(runAll, EVERY_MS).unref();
  waiting.add(run);
}

function runAll(): void {
  const due = waiting;
  waiting = new Set();
  for (const run of due) run();
}
