// What nobody waits for is stored at common moments: calls of storage made in one step travel as one message and share a commit, which
// costs a busy daemon more than the rows in it.

/** The longest that anything waits for the next moment. */
const EVERY_MS = 500;

let waiting: (() => void)[] = [];

/** Runs it at the next common moment, in one step with whatever else waits for that. It must not throw. */
export function atCommitMoment(run: () => void): void {
  if (waiting.push(run) === 1) setTimeout(runAll, EVERY_MS).unref();
}

function runAll(): void {
  const due = waiting;
  waiting = [];
  for (const run of due) run();
}
