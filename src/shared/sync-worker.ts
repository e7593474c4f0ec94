// Runs a sync in a forked worker process and waits for its outcome; a worker that dies is started again, and goes on where it was.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { knownCode, MagicError } from "#contract/errors.ts";
import type {
  StateKeeper,
  SyncOutcome,
  SyncProgress,
  SyncSpec,
  SyncWorkerQuestion,
  SyncWorkerReply,
  SyncWorkerRequest,
} from "#contract/sync.ts";
import type { TokenKeeper } from "#contract/tokens.ts";
import { onAbort } from "./abort.ts";
import { answerState } from "./state-ipc.ts";
import { memoryTokens, REFRESH_GRACE_MS, serveTokens, type TokenServer } from "./token-ipc.ts";

export interface WorkerOptions {
  readonly signal: AbortSignal;
  onProgress(progress: SyncProgress): void;
  /** Keeps what the source's vendor rotates; absent: nothing does beyond this process. */
  readonly tokens?: TokenKeeper;
  /** Keeps the run's state; only with `state_kept`. */
  readonly states?: StateKeeper;
  /** Gives the process to run in; absent: a new one. */
  readonly start?: () => ChildProcess;
  /** How much longer than the run's own time-out its process may say nothing. */
  readonly silenceMs?: number;
}

const ATTEMPTS = 3;
// It tells of itself four times a second, unless it computes without an end: then it cannot end itself.
const SILENCE_MS = 60_000;
// A cancelled worker undoes its work and says so; one that does not is ended, and its servers undo it.
const CANCEL_GRACE_MS = 1500;

/** The outcome of the run; a worker that was lost three times is a failed run. */
export async function runInWorker(spec: SyncSpec, options: WorkerOptions): Promise<SyncOutcome> {
  let last: SyncProgress | undefined;
  let how = "";
  let silent = false;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const end = await once(spec, {
      ...options,
      onProgress: (progress) => {
        last = progress;
        options.onProgress(progress);
      },
    });
    if ("outcome" in end) return end.outcome;
    ({ how, silent } = end);
    if (options.signal.aborted || silent) break;
  }
  const canceled = options.signal.aborted;
  const error = silent
    ? {
        code: "run_stalled",
        message: `The run's process said nothing any more, and was ended: it was at work on ${last?.waiting_for ?? "its start"}.`,
      }
    : { code: "worker_lost", message: `The run's process ended ${how}, ${ATTEMPTS} times.` };
  return {
    status: canceled ? "canceled" : "failed",
    sync_id: spec.sync_id ?? "",
    records_read: last?.records_read ?? 0,
    // What its checkpoints committed.
    records_synced: last?.records_written ?? 0,
    records_rejected: last?.records_rejected ?? 0,
    bytes: last?.bytes ?? 0,
    rejects: [],
    warnings: [],
    proof: { source_count: null, destination_count: null, checksum: null },
    changed: (last?.records_written ?? 0) > 0,
    error: canceled ? { code: "interrupted", message: "The run was cancelled." } : error,
  };
}

function once(
  spec: SyncSpec,
  options: WorkerOptions,
): Promise<{ outcome: SyncOutcome } | { how: string; silent: boolean }> {
  return new Promise((resolve) => {
    const worker = (options.start ?? startWorker)();
    const send = (request: SyncWorkerRequest) => worker.connected && worker.send(request, () => {});
    const tokens = serveTokens(options.tokens ?? memoryTokens(), send);
    // Counted, not measured: a machine that slept heard nothing either.
    const longestMs = spec.stall_timeout_s * 1000 + (options.silenceMs ?? SILENCE_MS);
    const lookMs = Math.min(1000, longestMs / 4);
    let silentMs = 0;
    const watch = setInterval(() => {
      silentMs += lookMs;
      if (silentMs >= longestMs) worker.kill("SIGKILL");
    }, lookMs).unref();
    worker.on("message", (reply: SyncWorkerReply) => {
      silentMs = 0;
      if (reply.type === "progress") options.onProgress(reply.progress);
      if (reply.type === "token") tokens.handle(reply);
      if (reply.type === "state") void answerState(reply, options.states).then(send);
      // It has let go of everything; to take its memory down lasts longer than some runs do.
      if (reply.type === "done") resolve({ outcome: reply.outcome });
    });
    const ended = (how: string) => {
      tokens.end();
      clearInterval(watch);
      forget();
      resolve({ how, silent: silentMs >= longestMs });
    };
    worker.on("error", (error) => ended(`with ${error.message}`));
    // Not "exit": the channel may still hold the outcome then.
    worker.on("close", (code, signal) => ended(signal ? `by ${signal}` : `with code ${code}`));
    send({ type: "run", spec });
    const forget = onAbort(options.signal, () => {
      send({ type: "cancel" });
      setTimeout(() => killWhenIdle(worker, tokens), CANCEL_GRACE_MS).unref();
    });
  });
}

function killWhenIdle(worker: ChildProcess, tokens: TokenServer, leftMs = REFRESH_GRACE_MS): void {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  if (!tokens.busy() || leftMs <= 0) worker.kill("SIGKILL");
  else setTimeout(() => killWhenIdle(worker, tokens, leftMs - 100), 100).unref();
}

// Of what passes through a worker nearly nothing stays, and it ends with its run. By V8's own measure a heap of 20 MB is marked again and again,
// on threads that take the processor from the work. In MB; with more of old space a large CSV file's run comes near 300 MB.
const HEAP = ["--initial-old-space-size=64", "--min-semi-space-size=8"];

/** A process that waits for one run or one question, and ends with its parent. */
export function startWorker(env = process.env): ChildProcess {
  return fork(fileURLToPath(import.meta.resolve("#entry/sync-worker")), [], {
    env,
    execArgv: HEAP,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

/**
 * One for connections, which name servers that anybody may have chosen: the password that its user keeps in PGPASSWORD or ~/.pgpass (which is
 * not looked into beside that variable) would be given to whichever server asks.
 */
export function startConnectionWorker(): ChildProcess {
  return startWorker({ ...process.env, PGPASSWORD: "" });
}

/** One question to a worker of its own: a check or a discovery, away from the event loop. */
export function askWorker<T>(
  question: Omit<SyncWorkerQuestion, "id">,
  signal: AbortSignal,
  keeper: TokenKeeper,
  start: () => ChildProcess,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const worker = start();
    const tokens = serveTokens(keeper, (answer) => worker.connected && worker.send(answer, () => {}));
    const stop = () => killWhenIdle(worker, tokens);
    worker.on("message", (reply: SyncWorkerReply) => {
      if (reply.type === "token") tokens.handle(reply);
      if (reply.type !== "answer") return;
      if (reply.error) reject(new MagicError(knownCode(reply.error.code), reply.error.message));
      else resolve(reply.result as T);
      stop();
    });
    worker.on("error", reject);
    worker.on("close", () => {
      tokens.end();
      forget();
      reject(new MagicError(signal.aborted ? "upstream_timeout" : "worker_lost"));
    });
    if (worker.connected) worker.send({ ...question, id: 1 } as SyncWorkerRequest, () => {});
    const forget = onAbort(signal, stop);
  });
}
