// Live execution: checks, discoveries and runs, each in a worker process, so that the daemon's event loop never sees a row.

import { join } from "node:path";
import { isMagicError } from "#contract/errors.ts";
import { DEFAULT_STALL_TIMEOUT_S, type DiscoveredObject, type SyncSpec } from "#contract/sync.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { askWorker, runInWorker } from "#shared/sync-worker.ts";
import type { KeeperOf } from "../connections/kept-tokens.ts";
import type { OpenConnection, RunTask, SyncExecution } from "../execution.ts";
import { type EndPorts, endOf } from "./ends.ts";
import type { Workers } from "./spare-worker.ts";

export interface ExecutionOptions extends EndPorts {
  readonly clock: Clock;
  /** The root's state folder: states of syncs whose destination has no transactions lie in `syncs` below it. */
  readonly stateFolder: string;
  /** Keeps what a connection's vendor rotates. */
  readonly keeperOf: KeeperOf;
  readonly workers: Workers;
  /** `host:port` of private addresses that may be reached: for connectors that make their own requests. */
  allowPrivate(): readonly string[];
}

export function createExecution(options: ExecutionOptions): SyncExecution {
  const { clock } = options;
  const keeper = (connection: OpenConnection) => options.keeperOf(connection.record.id);
  const { take } = options.workers;
  return {
    async check(connection, signal) {
      const started = clock.monotonic();
      const health = (status: "healthy" | "unhealthy", message: string | null) => ({
        status,
        checked_at: rfc3339(clock.now()),
        latency_ms: Math.round(clock.monotonic() - started),
        message,
      });
      try {
        const end = await endOf(connection, "", options);
        const question = { type: "check", end, allow_private: options.allowPrivate() } as const;
        await askWorker(question, signal, keeper(connection), () => take(end));
        return { status: "connected", health: health("healthy", null) };
      } catch (error) {
        if (!isMagicError(error)) throw error;
        return { status: "failed", health: health("unhealthy", error.message) };
      }
    },

    async discover(connection, signal) {
      const end = await endOf(connection, "", options);
      return askWorker<readonly DiscoveredObject[]>(
        { type: "discover", end, allow_private: options.allowPrivate() },
        signal,
        keeper(connection),
        () => take(end),
      );
    },

    async run(task, onProgress, signal) {
      const spec = await specOf(task, options);
      const start = () => take(spec.source, spec.destination);
      return runInWorker(spec, { signal, onProgress, start, tokens: keeper(task.source) });
    },

    // Nothing is made at a source yet: replication slots come with cdc.
    async cleanUp() {},
  };
}

async function specOf({ run, sync, source, destination }: RunTask, options: ExecutionOptions): Promise<SyncSpec> {
  const folder = join(options.stateFolder, "syncs");
  makeFolder(folder, 0o700);
  // Realtime is short polling where there is no change stream.
  const polling = sync.schedule === "realtime" && sync.mode === "cdc";
  return {
    run_id: run.id,
    sync_id: sync.id,
    source: await endOf(source, sync.source_object, options),
    destination: await endOf(destination, sync.destination_table, options),
    mode: polling ? "incremental" : sync.mode,
    primary_key: sync.primary_key,
    cursor_field: sync.cursor_field,
    any_cursor: polling,
    deletes: sync.deletes,
    on_bad_record: sync.on_bad_record,
    columns: sync.columns,
    mapping: sync.mapping,
    stall_timeout_s: sync.stall_timeout_s ?? DEFAULT_STALL_TIMEOUT_S,
    reset: run.full_refresh,
    skip_idle_proof: sync.schedule === "realtime",
    state_file: join(folder, `${sync.id}.json`),
    allow_private: options.allowPrivate(),
  };
}
