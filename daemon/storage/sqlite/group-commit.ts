// Runs units one after another and commits those of one moment together: one fsync for many callers. Each has a savepoint of its
// own, so that a unit that fails is undone alone. Nobody is answered before the commit.
import { toFailure } from "../failure.ts";
import { findUnit } from "../find-unit.ts";
import type { Connection } from "./connection.ts";
import type { Call, Reply } from "./messages.ts";

// A group ends after this long, so that its first caller does not wait for the thousandth.
const GROUP_MS = 20;

/** Answers for the calls that were run: all of them, or the first ones when the group's time was over. */
export type RunGroup = (calls: readonly Call[]) => Promise<Reply[]>;

export function groupCommit({ raw, db }: Connection): RunGroup {
  const begin = raw.prepare("BEGIN IMMEDIATE");
  const commit = raw.prepare("COMMIT");
  const save = raw.prepare("SAVEPOINT unit");
  const release = raw.prepare("RELEASE unit");
  const undo = raw.prepare("ROLLBACK TO unit");

  return async function runGroup(calls) {
    try {
      begin.run();
    } catch (error) {
      // Another program holds the database: each alone would wait as long for it, one after another.
      const failure = toFailure(error);
      return calls.map(({ id }) => ({ id, failure }));
    }
    const started = performance.now();
    const replies: Reply[] = [];
    try {
      for (const call of calls) {
        replies.push(await runUnit(call));
        if (performance.now() - started > GROUP_MS) break;
      }
      commit.run();
      return replies;
    } catch (error) {
      // The commit failed, or SQLite undid the whole transaction by itself (a full disk, an I/O error).
      if (raw.isTransaction) raw.exec("ROLLBACK");
      const [first] = calls;
      if (first === undefined) return [];
      if (calls.length === 1) return [{ id: first.id, failure: toFailure(error) }];
    }
    // Reads, and writes that still fit, need not suffer for a neighbour: each alone.
    const alone: Reply[] = [];
    for (const call of calls) alone.push(...(await runGroup([call])));
    return alone;
  };

  async function runUnit({ id, noun, unit, args }: Call): Promise<Reply> {
    save.run();
    try {
      const value = await findUnit(noun, unit)(db, args);
      release.run();
      return { id, value };
    } catch (error) {
      if (!raw.isTransaction) throw error;
      undo.run();
      release.run();
      return { id, failure: toFailure(error) };
    }
  }
}
