// A connection as the API and the webhooks show it: never its configuration or credentials.
import type { Connection } from "#contract/wire/connections.ts";
import type { ConnectionRecord } from "./tables/connection.ts";

export function connectionDocument(record: ConnectionRecord): Connection {
  return {
    id: record.id,
    object: "connection",
    provider: record.provider,
    name: record.name,
    environment: record.environment,
    status: record.status,
    health: record.health,
    created_at: record.created_at,
    updated_at: record.updated_at,
    last_synced_at: record.last_synced_at,
    metadata: { ...record.metadata },
  };
}
