// The proof of a run: counts of both ends, and a checksum where both can compute it.
import { MagicError } from "#contract/errors.ts";
import type { SyncFailure, SyncProof } from "#contract/sync.ts";
import type { WritePlan, WriteSession } from "./destination.ts";
import type { Run } from "./run-record.ts";
import type { SourceStream } from "./source.ts";

export const emptyProof: SyncProof = { source_count: null, destination_count: null, checksum: null };

export async function prove(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
  theirs: Promise<string | null> | null,
): Promise<SyncProof> {
  if (plan.kind !== "replace") return countBoth(run, stream, session);
  const wanted = run.read - run.rejects.count;
  const compare = theirs !== null && run.rejects.count === 0 && plan.deletes !== "soft";
  const ours = compare ? ((await session.checksum?.()) ?? null) : null;
  const count = ours?.count ?? (await session.count());
  if (count !== null && count !== wanted)
    throw new MagicError(
      "proof_failed",
      `${run.read} records were read, ${run.rejects.count} rejected, and ${count} are in the destination.`,
    );
  run.dog.waiting("the source's checksum");
  const checksum = ours ? ((await theirs) ?? null) : null;
  if (checksum !== null && checksum !== ours?.checksum)
    throw new MagicError(
      "proof_failed",
      `The checksums differ: ${checksum} at the source, ${ours?.checksum} at the destination.`,
    );
  return { source_count: run.read, destination_count: count, checksum };
}

// Begun before the first row is read and awaited after the last one: it has the whole run to finish. Null: there will be none.
export function startChecksum(
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
): Promise<string | null> | null {
  if (plan.kind !== "replace" || !stream.snapshot || !session.checksum || session.rawTypes.length === 0) return null;
  // A type without a hash function: the counts must do.
  return stream.checksum?.(session.rawTypes)?.catch(() => null) ?? null;
}

export async function countBoth(run: Run, stream: SourceStream, session: WriteSession): Promise<SyncProof> {
  run.dog.waiting("the counts");
  const [source, destination] = await Promise.all([stream.count?.() ?? null, session.count()]);
  return { source_count: source, destination_count: destination, checksum: null };
}

/** The state goes on, as where somebody takes out of a table what they have dealt with; else rows are missing, and nothing said so. */
export function emptiedWarning({ spec, rejects }: Run, proof: SyncProof): readonly SyncFailure[] {
  const { source_count, destination_count } = proof;
  if (source_count === null || destination_count === null) return [];
  if (source_count - rejects.count <= destination_count) return [];
  return [
    {
      code: "destination_emptied",
      message: `${spec.destination.object} had no row when the run began, though earlier runs have read ${spec.source.object}: what was removed there, or rejected, does not come again by itself. A full refresh (--full-refresh) brings everything.`,
    },
  ];
}
