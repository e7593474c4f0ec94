// A run as the API and the webhooks show it.
import type { Run } from "#contract/wire/syncs.ts";
import type { RunRecord } from "./tables/sync.ts";

export function runDocument(run: RunRecord): Run {
  return {
    id: run.id,
    object: "run",
    sync: run.sync_id,
    environment: run.environment,
    status: run.status,
    trigger: run.trigger,
    started_at: run.started_at,
    finished_at: run.finished_at,
    records_read: run.records_read,
    records_synced: run.records_synced,
    records_rejected: run.records_rejected,
    bytes: run.bytes,
    throughput: run.throughput,
    waiting_for: run.waiting_for,
    errors: [...run.errors],
    error: run.status === "failed" ? (run.errors[0] ?? null) : null,
    warnings: [...(run.warnings ?? [])],
    proof: run.proof,
  };
}
