// Live syncs as both programs speak of them: modes, what a worker process is asked to do, what it answers over its IPC channel.
import type { TokenAnswer, TokenRequest } from "./tokens.ts";

export const syncModes = ["full_refresh", "incremental", "cdc"] as const;
export type SyncMode = (typeof syncModes)[number];
export const deleteModes = ["soft", "hard", "ignore"] as const;
/** What happens to rows that have gone at the source: marked in `_magic_deleted_at`, removed, or left. */
export type DeleteMode = (typeof deleteModes)[number];
export const badRecordModes = ["quarantine", "fail"] as const;
export type BadRecordMode = (typeof badRecordModes)[number];

/** Seconds without progress after which a run is failed with what it was waiting for. */
export const DEFAULT_STALL_TIMEOUT_S = 600;
/** So many rejected records stand in a run's document. */
export const REJECTS_SHOWN = 100;

/** One end of a sync: `url` is a postgres://, mysql:// or http(s):// URL or a file's path; the object's name as in interface.md. */
export interface SyncEnd {
  readonly url: string;
  readonly object: string;
  /** The address that the egress guard chose for the URL's host: connected to instead of the name. */
  readonly address?: string;
  /** What a URL cannot hold: a password kept apart, a signing secret. Never logged. */
  readonly credentials?: Readonly<Record<string, string>>;
  /** Of a declarative connector: another one each time that its connection is led elsewhere. */
  readonly place?: string;
  /** A declarative connector instead of a URL: its definition and configuration. */
  readonly connector?: {
    readonly id: string;
    readonly manifest: unknown;
    readonly config: unknown;
    /** Texts of the configuration that are secret although no name in it says so. Never logged. */
    readonly secrets?: readonly string[];
  };
}

/** Everything that a run needs; plain JSON. */
export interface SyncSpec {
  readonly run_id: string;
  /** Names the state in `_magic_state`; null: derived from both ends, so that the same command resumes. */
  readonly sync_id: string | null;
  readonly source: SyncEnd;
  readonly destination: SyncEnd;
  readonly mode: SyncMode;
  /** null: as the source declares it. */
  readonly primary_key: readonly string[] | null;
  readonly cursor_field: string | null;
  /** null: a full refresh and cdc remove them, an incremental run leaves them. */
  readonly deletes: DeleteMode | null;
  readonly on_bad_record: BadRecordMode;
  /** Source columns to take, in order; null: all. */
  readonly columns: readonly string[] | null;
  /** Source column -> destination column. */
  readonly mapping: Readonly<Record<string, string>> | null;
  readonly stall_timeout_s: number;
  /** Forget the state and read everything. */
  readonly reset?: boolean;
  /** True: a run that finds nothing to do does not count rows (polling). */
  readonly skip_idle_proof?: boolean;
  /** Where destinations without transactions (files, http) keep the sync's state. */
  readonly state_file: string | null;
  /** True: whoever started the worker keeps it for an HTTP endpoint (`StateKeeper`). */
  readonly state_kept?: boolean;
  /** `HOST:PORT` private addresses that may be reached; "any" for what a person typed on the command line. */
  readonly allow_private: readonly string[] | "any";
}

/** A record that could not be written. `key` is its primary key, or `row N` in reading order. */
export interface Reject {
  readonly key: string;
  readonly column: string | null;
  readonly reason: string;
}

export interface SyncProof {
  /** Rows at the source when it was read; null where it cannot say. */
  readonly source_count: number | null;
  readonly destination_count: number | null;
  /** Order-independent, equal on both sides; null where one side cannot compute it. */
  readonly checksum: string | null;
}

export interface SyncProgress {
  readonly phase: "connect" | "discover" | "read" | "merge" | "verify" | "commit";
  readonly records_read: number;
  readonly records_written: number;
  readonly records_rejected: number;
  readonly bytes: number;
  /** An estimate of all records; null where unknown. */
  readonly records_total: number | null;
  readonly partitions: { readonly done: number; readonly total: number };
  /** What the run is waiting for right now. */
  readonly waiting_for: string;
}

export interface SyncFailure {
  readonly code: string;
  readonly message: string;
}

export interface SyncOutcome {
  readonly status: "completed" | "failed" | "canceled";
  readonly records_read: number;
  readonly records_synced: number;
  readonly records_rejected: number;
  readonly bytes: number;
  readonly rejects: readonly Reject[];
  readonly warnings: readonly SyncFailure[];
  readonly proof: SyncProof;
  readonly error: SyncFailure | null;
  readonly sync_id: string;
  /** True: rows came, or went. */
  readonly changed: boolean;
}

/** Keeps how far a sync has come where its destination cannot; what a state is, the engine knows. */
export interface StateKeeper {
  /** null: nothing is kept. */
  read(): Promise<unknown>;
  /** Resolves when it is durable. Throws where somebody else has kept another since it was read. */
  save(state: unknown): Promise<void>;
}

/** Worker -> parent. */
export type StateRequest = { readonly type: "state"; readonly id: number } & (
  | { readonly ask: "read" }
  | { readonly ask: "save"; readonly state: unknown }
);

/** Parent -> worker: the answer to both; `state` of a read. */
export interface StateAnswer {
  readonly type: "state";
  readonly id: number;
  readonly state: unknown;
  readonly error?: SyncFailure;
}

/** Parent -> worker: one answer is wanted. */
export type SyncWorkerQuestion = Extract<SyncWorkerRequest, { type: "check" | "discover" }>;

/** Parent -> worker. */
export type SyncWorkerRequest =
  /** Load what ends of these kinds need: they are likely to come next. */
  | { readonly type: "warm"; readonly kinds: readonly string[] }
  | { readonly type: "run"; readonly spec: SyncSpec }
  | {
      readonly type: "check";
      readonly id: number;
      readonly end: SyncEnd;
      readonly allow_private: readonly string[] | "any";
    }
  | {
      readonly type: "discover";
      readonly id: number;
      readonly end: SyncEnd;
      readonly allow_private: readonly string[] | "any";
    }
  | TokenAnswer
  | StateAnswer
  | { readonly type: "cancel" };

/** Worker -> parent. */
export type SyncWorkerReply =
  | { readonly type: "ready" }
  | { readonly type: "progress"; readonly progress: SyncProgress }
  | { readonly type: "done"; readonly outcome: SyncOutcome }
  | TokenRequest
  | StateRequest
  | { readonly type: "answer"; readonly id: number; readonly result?: unknown; readonly error?: SyncFailure };

/** One object of a source or destination: a table, a view, a file, an API's stream. */
export interface DiscoveredObject {
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly primary_key: readonly string[];
  readonly cursor_candidates: readonly string[];
  /** An estimate; null where unknown. */
  readonly records: number | null;
}
