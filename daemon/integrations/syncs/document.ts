// A sync as the API shows it.
import type { Sync } from "#contract/wire/syncs.ts";
import { runDocument } from "#daemon/storage/run-document.ts";
import type { SyncRecord } from "#daemon/storage/tables/sync.ts";
import { rfc3339 } from "#shared/clock.ts";
import { nextDue } from "./schedule.ts";

export function syncDocument(sync: SyncRecord, now: number): Sync {
  const { lastRun } = sync;
  const due = sync.status === "paused" ? null : nextDue(sync, now);
  return {
    id: sync.id,
    object: "sync",
    environment: sync.environment,
    name: sync.name,
    source: { connection: sync.source_connection, object: sync.source_object },
    destination: { connection: sync.destination_connection, table: sync.destination_table },
    schedule: sync.schedule,
    timezone: sync.timezone,
    mode: sync.mode,
    primary_key: sync.primary_key && [...sync.primary_key],
    cursor_field: sync.cursor_field,
    columns: sync.columns && [...sync.columns],
    mapping: sync.mapping && { ...sync.mapping },
    on_bad_record: sync.on_bad_record,
    deletes: sync.deletes,
    stall_timeout_s: sync.stall_timeout_s,
    status: sync.status,
    records_synced: sync.records_synced,
    last_run: lastRun && runDocument(lastRun),
    next_run_at: due === null ? null : rfc3339(due),
    throughput: lastRun?.throughput ?? { records_per_s: 0, bytes_per_s: 0 },
    errors: [...(lastRun?.errors ?? [])],
    metadata: { ...sync.metadata },
    created_at: sync.created_at,
    updated_at: sync.updated_at,
  };
}
