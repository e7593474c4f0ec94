// What runs behind the resources. The sandbox simulates, live does it; routes, validation, storage and state machines are shared.
import type { ConnectionStatus } from "#contract/states.ts";
import type { DiscoveredObject, StateKeeper, SyncOutcome, SyncProgress } from "#contract/sync.ts";
import type { ConnectionRecord, Health } from "#daemon/storage/tables/connection.ts";
import type { RunRecord, SyncRecord } from "#daemon/storage/tables/sync.ts";

/** A connection with its secrets opened and references replaced; never logged, never stored. */
export interface OpenConnection {
  readonly record: ConnectionRecord;
  readonly config: Readonly<Record<string, unknown>>;
  readonly credentials: Readonly<Record<string, unknown>>;
  /** True: it was made by a credential of the API, whose files stay below the data folder. */
  readonly bounded?: boolean;
  /** See ConnectionSecret. */
  readonly place?: string;
}

export interface Checked {
  readonly status: ConnectionStatus;
  readonly health: Health;
}

export interface RunTask {
  readonly run: RunRecord;
  readonly sync: SyncRecord;
  readonly source: OpenConnection;
  readonly destination: OpenConnection;
  /** For a destination that cannot keep how far it has come. */
  readonly state: StateKeeper;
}

/** Live execution: implemented by the sync engine, wired in app.ts. Every method may take long and must end when `signal` aborts. */
export interface SyncExecution {
  check(connection: OpenConnection, signal: AbortSignal): Promise<Checked>;
  discover(connection: OpenConnection, signal: AbortSignal): Promise<readonly DiscoveredObject[]>;
  /** Runs to the end. It is called again for the same run after a crash, and must continue from the durable state. */
  run(task: RunTask, onProgress: (progress: SyncProgress) => void, signal: AbortSignal): Promise<SyncOutcome>;
}

/** How a run ends, for the run's document. */
export interface SimulatedRun {
  readonly status: "completed" | "failed";
  readonly result: Partial<RunRecord>;
  readonly rejects: readonly { key: string; column_name: string | null; reason: string }[];
}
