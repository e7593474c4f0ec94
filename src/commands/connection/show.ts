// A connection for people.
import type { Connection } from "#contract/wire/connections.ts";
import type { TextForm } from "#output/output.ts";
import { record } from "#output/table.ts";

export const showConnection =
  (connection: Connection): TextForm =>
  (paint) =>
    record(
      {
        id: connection.id,
        provider: connection.provider,
        name: connection.name,
        environment: connection.environment,
        status: statusOf(connection.status, paint),
        health: connection.health.message ?? connection.health.status,
        latency: connection.health.latency_ms === null ? undefined : `${connection.health.latency_ms} ms`,
        "last synced": connection.last_synced_at,
        created: connection.created_at,
        metadata: Object.keys(connection.metadata).length > 0 ? JSON.stringify(connection.metadata) : undefined,
      },
      paint,
    );

/** Green where all is well, red where somebody must act. */
export function statusOf(status: string, paint: Parameters<TextForm>[0]): string {
  if (/^(connected|active|completed|succeeded|enabled|running)$/.test(status)) return paint.green(status);
  return /^(failed|disabled)$/.test(status) ? paint.red(status) : paint.yellow(status);
}
