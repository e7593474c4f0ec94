// Live execution: checks, discoveries and runs, each in a worker process, so that the daemon's event loop never sees a row.
import { isMagicError, MagicError } from "#contract/errors.ts";
import { DEFAULT_STALL_TIMEOUT_S, type DiscoveredObject, type SyncEnd, type SyncSpec } from "#contract/sync.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { openPlaces } from "#shared/places.ts";
import { askWorker, runInWorker } from "#shared/sync-worker.ts";
import type { KeeperOf } from "../connections/kept-tokens.ts";
import { tellsChanges } from "../engine/plan.ts";
import type { Checked, OpenConnection, RunTask, SyncExecution } from "../execution.ts";
import { type EndPorts, endOf } from "./ends.ts";
import { makeDataFolder } from "./local-files.ts";
import type { Workers } from "./spare-worker.ts";

export interface ExecutionOptions extends EndPorts {
  readonly clock: Clock;
  /** Keeps what a connection's vendor rotates. */
  readonly keeperOf: KeeperOf;
  readonly workers: Workers;
  /** `host:port` of private addresses that may be reached: for connectors that make their own requests. */
  allowPrivate(): readonly string[];
}

/** Checks and discoveries at once: each is a process of some 90 MB. */
const QUESTIONS = 8;
/** Who waits longer for a place would have too little time left for the answer. */
const TURN_MS = 10_000;
const tooMany = () =>
  new MagicError("rate_limited", "Too many connections are being tested or discovered: this one's turn did not come.", {
    retryAfterS: 10,
  });

export function createExecution(options: ExecutionOptions): SyncExecution {
  const { clock } = options;
  const keeper = (connection: OpenConnection) => options.keeperOf(connection.record.id);
  const { take } = options.workers;
  const places = openPlaces({ atOnce: QUESTIONS, refusal: tooMany });
  const inTurn = <T>(work: () => Promise<T>, signal: AbortSignal) =>
    places.hold(work, AbortSignal.any([signal, AbortSignal.timeout(TURN_MS)]));
  const ask = <T>(type: "check" | "discover", connection: OpenConnection, end: SyncEnd, signal: AbortSignal) => {
    const question = { type, end, allow_private: options.allowPrivate() } as const;
    return askWorker<T>(question, signal, keeper(connection), () => take(end));
  };
  return {
    check: (connection, signal) => inTurn(() => check(connection, signal), signal),

    discover: (connection, signal) =>
      inTurn(async () => {
        const end = await endOf(connection, "", options);
        return ask<readonly DiscoveredObject[]>("discover", connection, end, signal);
      }, signal),

    async run(task, onProgress, signal) {
      const spec = await specOf(task, options);
      const start = () => take(spec.source, spec.destination);
      return runInWorker(spec, { signal, onProgress, start, tokens: keeper(task.source), states: task.state });
    },
  };

  async function check(connection: OpenConnection, signal: AbortSignal): Promise<Checked> {
    const started = clock.monotonic();
    const health = (status: "healthy" | "unhealthy", message: string | null) => ({
      status,
      checked_at: rfc3339(clock.now()),
      latency_ms: Math.round(clock.monotonic() - started),
      message,
    });
    try {
      const end = await endOf(connection, "", options);
      await ask("check", connection, end, signal);
      return { status: "connected", health: health("healthy", null) };
    } catch (error) {
      if (!isMagicError(error)) throw error;
      return { status: "failed", health: health("unhealthy", error.message) };
    }
  }
}

async function specOf({ run, sync, source, destination }: RunTask, options: ExecutionOptions): Promise<SyncSpec> {
  const from = await endOf(source, sync.source_object, options);
  // Realtime is short polling where the source does not tell what has changed.
  const polls = sync.schedule === "realtime" && sync.mode === "cdc" && !tellsChanges(from);
  const into = await endOf(destination, sync.destination_table, options);
  makeDataFolder(into.url, options.root);
  return {
    run_id: run.id,
    sync_id: sync.id,
    source: from,
    destination: into,
    mode: polls ? "incremental" : sync.mode,
    primary_key: sync.primary_key,
    cursor_field: sync.cursor_field,
    deletes: sync.deletes,
    on_bad_record: sync.on_bad_record,
    columns: sync.columns,
    mapping: sync.mapping,
    stall_timeout_s: sync.stall_timeout_s ?? DEFAULT_STALL_TIMEOUT_S,
    reset: run.full_refresh,
    skip_idle_proof: sync.schedule === "realtime",
    // A file has its state beside itself, where whoever writes it finds it: a sync too that replaces what this one appended.
    state_file: null,
    state_kept: true,
    allow_private: options.allowPrivate(),
  };
}
