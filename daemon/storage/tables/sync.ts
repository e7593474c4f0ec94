import type { Environment } from "#contract/protocol.ts";
import type { RunStatus, SyncStatus } from "#contract/states.ts";
import type { BadRecordMode, DeleteMode, SyncMode, SyncProof } from "#contract/sync.ts";
import type { Metadata } from "./connection.ts";

export interface SyncTable {
  readonly id: string;
  readonly environment: Environment;
  readonly status: SyncStatus;
  readonly source_connection: string;
  readonly destination_connection: string;
  /** JSON: SyncBody. */
  readonly body: string;
  readonly records_synced: number;
  /** How many runs it has had: the ordinal of the last one. */
  readonly runs: number;
  readonly last_run: string | null;
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export type Schedule = string | { readonly cron: string; readonly timezone?: string };

export interface SyncBody {
  readonly name: string | null;
  readonly source_object: string;
  readonly destination_table: string;
  readonly schedule: Schedule;
  readonly timezone: string | null;
  readonly mode: SyncMode;
  readonly primary_key: readonly string[] | null;
  readonly cursor_field: string | null;
  readonly columns: readonly string[] | null;
  readonly mapping: Readonly<Record<string, string>> | null;
  readonly on_bad_record: BadRecordMode;
  readonly deletes: DeleteMode | null;
  readonly stall_timeout_s: number | null;
  readonly metadata: Metadata;
}

export interface SyncRecord extends Omit<SyncTable, "body">, SyncBody {
  readonly lastRun: RunRecord | null;
}

export interface RunTable {
  readonly id: string;
  readonly sync_id: string;
  readonly environment: Environment;
  readonly ordinal: number;
  readonly status: RunStatus;
  /** JSON: RunBody. */
  readonly body: string;
}

export interface RunProblem {
  readonly code: string;
  readonly message: string;
}

export interface RunBody {
  readonly trigger: "manual" | "schedule" | "realtime";
  readonly full_refresh: boolean;
  readonly objects: readonly string[] | null;
  readonly queued_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly records_read: number;
  readonly records_synced: number;
  readonly records_rejected: number;
  readonly bytes: number;
  readonly throughput: { readonly records_per_s: number; readonly bytes_per_s: number };
  /** What a run under way waits for; null when it has ended. */
  readonly waiting_for: string | null;
  readonly errors: readonly RunProblem[];
  /** Absent: a run of before they were kept. */
  readonly warnings?: readonly RunProblem[];
  readonly proof: SyncProof | null;
}

export interface RunRecord extends Omit<RunTable, "body">, RunBody {}

export interface RejectTable {
  /** `rej_` and its place in the run, so that it sorts. */
  readonly id: string;
  readonly run_id: string;
  readonly key: string;
  readonly column_name: string | null;
  readonly reason: string;
}

/** How far a sync has come whose destination cannot keep it. */
export interface SyncStateTable {
  readonly sync_id: string;
  /** The source's object. */
  readonly stream: string;
  /** JSON, as the engine gave it. */
  readonly body: string;
  /** How often it was kept. */
  readonly revision: number;
}

export interface SyncTables {
  readonly sync: SyncTable;
  readonly sync_state: SyncStateTable;
  readonly run: RunTable;
  readonly reject: RejectTable;
}
