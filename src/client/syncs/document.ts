// The run resource (core-api.md) of a run that needed no daemon.
import type { SyncOutcome, SyncSpec } from "#contract/sync.ts";
import { rfc3339 } from "#shared/clock.ts";

/** `seconds`: the run's duration on a monotonic clock. */
export function runDocument(
  spec: SyncSpec,
  outcome: SyncOutcome,
  startedAt: number,
  seconds: number,
): Record<string, unknown> {
  const perSecond = (amount: number) => (seconds > 0 ? Math.round((amount / seconds) * 10) / 10 : 0);
  return {
    id: spec.run_id,
    object: "run",
    sync: outcome.sync_id,
    status: outcome.status,
    trigger: "manual",
    started_at: rfc3339(startedAt),
    finished_at: rfc3339(startedAt + Math.round(seconds * 1000)),
    records_read: outcome.records_read,
    records_synced: outcome.status === "completed" ? outcome.records_synced : 0,
    records_rejected: outcome.records_rejected,
    bytes: outcome.bytes,
    throughput: { records_per_s: perSecond(outcome.records_synced), bytes_per_s: perSecond(outcome.bytes) },
    errors: [...(outcome.error ? [outcome.error] : []), ...outcome.warnings],
    warnings: outcome.warnings,
    proof: outcome.proof,
    rejects: outcome.rejects,
    ...(outcome.error ? { error: outcome.error } : {}),
  };
}
