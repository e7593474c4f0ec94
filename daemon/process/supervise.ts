// How a daemon ends: drained on a signal, by idleness, with its parent, or by a crash that leaves a note.
import { exitCodes } from "#contract/exit-codes.ts";
import type { App } from "#daemon/app.ts";
import { errorFields } from "#daemon/telemetry/log.ts";
import type { LogFile } from "#daemon/telemetry/log-file.ts";
import { noteCrash } from "./crash-note.ts";
import { watchIdle } from "./idle.ts";
import type { OwnerLock } from "./lock.ts";
import type { DaemonOptions } from "./options.ts";
import { removeOwnFiles } from "./runtime-file.ts";

/** Milliseconds that answers under way get when the daemon is told to stop. */
const DRAIN_TIMEOUT = 15_000;
/** What is cut then gets so long to be told. */
const CUT_TIMEOUT = 250;

/** All that a running daemon holds. */
export interface Life {
  readonly app: App;
  readonly options: DaemonOptions;
  readonly root: string;
  readonly state: string;
  readonly lock: OwnerLock;
  readonly logFile: LogFile;
}

export interface Supervision {
  readonly end: (reason: string) => void;
  readonly ending: () => boolean;
}

/** From now on signals, errors and idleness end the daemon in order. */
export function superviseProcess(life: Life): Supervision {
  const { app, options, state, logFile } = life;
  let ending = false;
  const end = (reason: string) => {
    if (ending) return;
    ending = true;
    void stop(life, reason);
  };
  let signals = 0;
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => {
      // A second one means: now. The end of the command in the foreground, which the same Ctrl-C reaches, is no first one.
      if (++signals > 1) process.exit(exitCodes.interrupted);
      end(signal);
    });
  const crash = (error: unknown) => {
    noteCrash(state, error);
    app.logger.error("daemon.crashed", errorFields(error));
    logFile.flushSync();
    removeOwnFiles(state);
    process.exit(exitCodes.internal);
  };
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);
  // A closed terminal or pipe must not end the daemon.
  process.stdout.on("error", () => undefined);
  process.stderr.on("error", () => undefined);
  if (options.foreground) {
    process.on("disconnect", () => end("parent gone"));
    // It may have gone while this daemon was coming up: then the event was before anyone listened.
    if (process.connected === false) setImmediate(() => end("parent gone"));
  }
  if (options.idleAfterMs !== undefined)
    watchIdle({
      idleFor: app.activity.idleFor,
      heldBy: app.activity.heldBy,
      afterMs: options.idleAfterMs,
      end: () => end("idle"),
    });
  return { end, ending: () => ending };
}

async function stop({ app, state, lock, logFile }: Life, reason: string): Promise<void> {
  app.logger.info("daemon.stopping", { reason });
  // From here on commands look for, or start, another daemon; the lock makes that one wait until this one is gone.
  removeOwnFiles(state);
  const hard = setTimeout(() => {
    app.logger.warn("daemon.drain_timeout", { after_ms: DRAIN_TIMEOUT });
    app.cut();
    setTimeout(() => app.fastify.server.closeAllConnections(), CUT_TIMEOUT).unref();
    setTimeout(() => process.exit(exitCodes.ok), 1_000).unref();
  }, DRAIN_TIMEOUT);
  let code: number = exitCodes.ok;
  try {
    await app.close();
  } catch (error) {
    app.logger.error("daemon.stop_failed", errorFields(error));
    code = exitCodes.internal;
  }
  clearTimeout(hard);
  app.logger.info("daemon.stopped", { reason });
  await logFile.close();
  lock.release();
  process.exit(code);
}
