// Metadata: a few values of the caller's own, also after many patches.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import type { Metadata } from "#daemon/storage/tables/connection.ts";
import { mergePatch } from "./merge-patch.ts";

/** As in the schema of what is sent, which sees one patch alone. */
const MAX_KEYS = 50;

export function metadataProblems(metadata: Metadata): FieldProblem[] {
  const keys = Object.keys(metadata).length;
  if (keys <= MAX_KEYS) return [];
  return [{ pointer: "/metadata", code: "maxProperties", detail: `would have ${keys} keys: ${MAX_KEYS} are the most` }];
}

/** @throws MagicError `validation_failed` when there would be too many keys. */
export function mergedMetadata(held: Metadata, patch: unknown): Metadata {
  if (patch === undefined) return held;
  const merged = patch === null ? {} : (mergePatch(held, patch) as Metadata);
  const problems = metadataProblems(merged);
  if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
  return merged;
}
