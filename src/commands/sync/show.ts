// Syncs and runs for people.
import { statusOf } from "#commands/connection/show.ts";
import type { Run, Sync } from "#contract/wire/syncs.ts";
import type { TextForm } from "#output/output.ts";
import { record } from "#output/table.ts";

export const showSync =
  (sync: Sync): TextForm =>
  (paint) =>
    record(
      {
        id: sync.id,
        name: sync.name ?? undefined,
        environment: sync.environment,
        source: `${sync.source.connection}:${sync.source.object}`,
        destination: `${sync.destination.connection}:${sync.destination.table}`,
        mode: sync.mode,
        schedule: scheduleText(sync),
        "next run": sync.next_run_at ?? undefined,
        status: statusOf(sync.status, paint),
        "records synced": sync.records_synced.toLocaleString("en-US"),
        "last run": sync.last_run ? `${sync.last_run.id} ${sync.last_run.status}` : undefined,
        error: sync.errors[0]?.message,
      },
      paint,
    );

function scheduleText({ schedule, timezone }: Pick<Sync, "schedule" | "timezone">): string {
  const text = typeof schedule === "string" ? schedule : schedule.cron;
  const zone = (typeof schedule === "string" ? undefined : schedule.timezone) ?? timezone;
  return zone ? `${text} (${zone})` : text;
}

export const showRun =
  (run: Run): TextForm =>
  (paint) =>
    record(
      {
        run: run.id,
        sync: run.sync,
        status: statusOf(run.status, paint),
        read: run.records_read.toLocaleString("en-US"),
        synced: run.records_synced.toLocaleString("en-US"),
        rejected: run.records_rejected.toLocaleString("en-US"),
        rate: `${run.throughput.records_per_s.toLocaleString("en-US")} records/s`,
        "waiting for": run.waiting_for ?? undefined,
        error: run.error?.message,
      },
      paint,
    );
