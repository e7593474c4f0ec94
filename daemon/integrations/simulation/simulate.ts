// The sandbox: what a connection's test, its objects and a sync's run would have been. Every value follows from the seed, the
// resource's id and, for a run, its ordinal in the sync; nothing is asked of the outside.
import type { Connector } from "#contract/wire/connectors.ts";
import type { Health } from "#daemon/storage/tables/connection.ts";
import type { SyncRecord } from "#daemon/storage/tables/sync.ts";
import type { Checked, SimulatedRun } from "../execution.ts";
import { seededRandom } from "./random.ts";
import { sampleObjects } from "./sample-objects.ts";

/** A connection that works. It was tested when it was made. */
export function simulateCheck(seed: number, { id, created_at }: { id: string; created_at: string }): Checked {
  const random = seededRandom(seed, id, "health");
  const health: Health = {
    status: "healthy",
    checked_at: created_at,
    latency_ms: random.between(18, 190),
    message: null,
  };
  return { status: "connected", health };
}

export function simulateObjects(seed: number, connectionId: string, connector: Connector | null) {
  const objects = connector !== null && connector.objects.length > 0 ? connector.objects : sampleObjects;
  return objects.map((object) => ({
    ...object,
    records: seededRandom(seed, connectionId, object.name).between(200, 250_000),
  }));
}

export interface RunToSimulate {
  readonly seed: number;
  readonly sync: SyncRecord;
  readonly ordinal: number;
  readonly fullRefresh: boolean;
  /** The schema of the sync's object, where the catalogue knows it. */
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  readonly fails: boolean;
  /** When it is told to run, in ms since the epoch: a simulated run has just ended then. */
  readonly now: number;
}

export function simulateRun({ seed, sync, ordinal, fullRefresh, schema, fails, now }: RunToSimulate): SimulatedRun {
  const random = seededRandom(seed, sync.id, ordinal);
  const everything = ordinal === 1 || fullRefresh || sync.mode === "full_refresh";
  const read = fails ? 0 : everything ? random.between(800, 24_000) : random.between(3, 900);
  const rejected = fails || random.next() > 0.2 ? 0 : random.between(1, 3);
  const synced = read - rejected;
  const bytes = synced * random.between(140, 620);
  const seconds = 0.2 + read / random.between(9_000, 40_000);
  const checksum = random.hex();
  const columns = Object.keys((schema?.["properties"] as object | undefined) ?? { id: {}, name: {}, amount: {} });
  const rejects = Array.from({ length: rejected }, () => ({
    key: String(random.between(1, Math.max(1, read))),
    column_name: columns[random.between(0, columns.length - 1)] ?? null,
    reason: reasons[random.between(0, reasons.length - 1)] ?? "",
  }));
  return {
    status: fails ? "failed" : "completed",
    rejects,
    result: {
      started_at: new Date(now - Math.round(seconds * 1000)).toISOString(),
      finished_at: new Date(now).toISOString(),
      records_read: read,
      records_synced: synced,
      records_rejected: rejected,
      bytes,
      throughput: { records_per_s: Math.round(synced / seconds), bytes_per_s: Math.round(bytes / seconds) },
      errors: fails
        ? [{ code: "simulated_failure", message: 'The connection asks for it: metadata.simulate is "run_failed".' }]
        : [],
      proof: fails ? null : { source_count: read, destination_count: synced, checksum },
    },
  };
}

const reasons = [
  "the value does not fit numeric(18,2)",
  "the text holds a NUL byte, which the destination cannot store",
  "a date of 0000-00-00 is none",
  "the value is longer than the destination's column",
];
