// Rows that have gone at the source: found by comparing all keys, where the counts of both ends do not tell that there are none.
import type { SyncProof } from "#contract/sync.ts";
import { converterOf } from "./convert.ts";
import type { WritePlan, WriteSession } from "./destination.ts";
import { countBoth } from "./proof.ts";
import type { Start } from "./resume.ts";
import type { Run } from "./run-record.ts";
import type { SourceStream } from "./source.ts";
import type { Value } from "./types.ts";

/** Whether a run of this plan looks for them; a full refresh has them go with the old table. */
export function followsDeletions({ kind, deletes }: WritePlan): boolean {
  return kind === "upsert" && deletes !== "ignore";
}

/** True where the last run did something else about them: there may be some though nothing has happened since. */
export function unfollowed({ deletes }: Start, plan: WritePlan): boolean {
  return followsDeletions(plan) && deletes !== plan.deletes;
}

/**
 * The counts of both ends where no row can have gone, else null: whatever was not read was there before, and there are as many rows as when
 * the last run ended. Those of the destination tell that nobody else has written any.
 */
export async function sameCounts(
  run: Run,
  from: Start,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
): Promise<SyncProof | null> {
  const { counts } = from;
  const followed = followsDeletions(plan) && !unfollowed(from, plan);
  if (!followed || !stream.exact || run.read > 0 || !counts || counts.source_count === null) return null;
  const now = await countBoth(run, stream, session);
  const same = now.source_count === counts.source_count && now.destination_count === counts.destination_count;
  return same ? now : null;
}

/** Answers how many rows have gone. */
export async function followDeletions(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
): Promise<number> {
  run.dog.waiting(`the keys of ${run.spec.source.object}`);
  if (stream.keys) return session.deleteMissing(asWritten(stream.keys(), plan, session.existing));
  // A record that cannot be read has not gone, and an interface that gives what is new says nothing of the rest.
  run.warnings.push({
    code: "deletions_not_followed",
    message: `Not all keys of ${run.spec.source.object} could be read, so nobody can tell which records have gone: no row was deleted or marked.`,
  });
  return 0;
}

// In the form that the rows got on their way: else none of them would be found.
async function* asWritten(
  keys: AsyncIterable<readonly Value[][]>,
  { primaryKey, columns }: WritePlan,
  existing: WriteSession["existing"],
): AsyncGenerator<readonly Value[][]> {
  const key = primaryKey.flatMap((name) => columns.find((column) => column.name === name) ?? []);
  const convert = converterOf(key, existing);
  for await (const rows of keys) yield convert ? rows.map(convert) : rows;
}
