import type { Environment } from "#contract/protocol.ts";
import type { ConnectionStatus } from "#contract/states.ts";

export interface ConnectionTable {
  readonly id: string;
  readonly environment: Environment;
  readonly provider: string;
  readonly status: ConnectionStatus;
  /** JSON: ConnectionBody. */
  readonly body: string;
  /** Configuration and credentials, sealed together; null when there are none. */
  readonly secret: string | null;
  /** Raised by every change; a change made on an older one is refused. */
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_synced_at: string | null;
}

export interface Health {
  readonly status: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly checked_at: string | null;
  readonly latency_ms: number | null;
  readonly message: string | null;
}

export type Metadata = Readonly<Record<string, string | number | boolean>>;

export interface ConnectionBody {
  readonly name: string;
  readonly health: Health;
  readonly metadata: Metadata;
}

export interface ConnectionRecord extends Omit<ConnectionTable, "body">, ConnectionBody {}

export interface ConnectionTables {
  readonly connection: ConnectionTable;
}
