// A daemon's life: own the root, wire the app, listen, tell the command that started it, serve, drain, go.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { errors, isMagicError } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { PROTOCOL, type ReadyMessage, type RuntimeFile, runtimeNames, VERSION } from "#contract/protocol.ts";
import type { App } from "#daemon/app.ts";
import type { FoundationConfig } from "#daemon/foundation.ts";
import { openLogFile } from "#daemon/telemetry/log-file.ts";
import { createLogStream } from "#daemon/telemetry/log-stream.ts";
import { rfc3339 } from "#shared/clock.ts";
import { databaseFile, stateFolder } from "#shared/paths.ts";
import { configuredPort, listenOn } from "#shared/port.ts";
import { processStarted } from "#shared/process-identity.ts";
import { prepareStateFolder, refusedByDisk } from "#shared/state-folder.ts";
import { forgetCrashes } from "./crash-note.ts";
import { foregroundLog } from "./foreground-log.ts";
import { acquireLock, type OwnerLock } from "./lock.ts";
import { type DaemonOptions, parseOptions } from "./options.ts";
import { watchPresence } from "./presence.ts";
import {
  anotherIsReady,
  removeOwnFiles,
  removeStartingMark,
  writeRuntimeFile,
  writeStartingMark,
} from "./runtime-file.ts";
import { type Life, superviseProcess } from "./supervise.ts";

/** Milliseconds after which a daemon counts as one that runs well. */
const STEADY_AFTER = 60_000;

/** Runs until a signal, or the idle time, ends it; resolves only when it does not come up, with the exit code. */
export async function runDaemon(argv: readonly string[]): Promise<number> {
  // Whatever this process makes is the user's alone, also where nobody thought of a mode.
  process.umask(0o077);
  let lock: OwnerLock | undefined;
  let state: string | undefined;
  try {
    const options = parseOptions(argv, process.env);
    const root = realpathSync(options.root);
    state = stateFolder(root);
    await prepareStateFolder(state);
    const folder = state;
    lock = await acquireLock(join(state, runtimeNames.lock), () => anotherIsReady(folder));
    writeStartingMark(state, {
      pid: process.pid,
      pid_started: processStarted(process.pid),
      started_at: rfc3339(Date.now()),
    });
    const logStream = createLogStream();
    const logFile = openLogFile({ path: join(state, runtimeNames.log), stream: logStream });
    if (options.foreground) foregroundLog(logStream);
    const app = await startApp(options, root, { logStream, logFile });
    await serve({ app, options, root, state, lock, logFile });
    return exitCodes.ok;
  } catch (error) {
    if (state && lock) removeOwnFiles(state);
    const known = refusedByDisk(state ?? "of this root", error);
    const code = isMagicError(known) ? known.code : "internal";
    const detail = isMagicError(known) ? known.message : inspect(known);
    await tell({ type: "failed", code, detail, extra: isMagicError(known) ? known.extra : {} });
    return exitCodes[errors[code].exit];
  }
}

// Storage opens in its thread while the modules of everything else load in this one: they are most of the start.
async function startApp(
  options: DaemonOptions,
  root: string,
  log: Pick<FoundationConfig, "logStream" | "logFile">,
): Promise<App> {
  let up = false;
  // Storage that died cannot be mended from within: end, loudly, and let the next command start another daemon. Storage that
  // does not open at all is createApp's to refuse.
  const onFatal = (error: Error) => {
    if (up)
      setImmediate(() => {
        throw error;
      });
  };
  const { openStorage } = await import("#daemon/storage/open.ts");
  const databaseUrl = process.env["MAGIC_DATABASE_URL"] || undefined;
  const storage = openStorage({ root, databaseUrl, onFatal });
  storage.catch(() => undefined);
  const { createApp } = await import("#daemon/app.ts");
  const app = await createApp({
    root,
    storage,
    ownProcess: true,
    ...(options.host !== undefined && { host: options.host }),
    flags: options.flags,
    ...log,
  });
  up = true;
  return app;
}

async function serve(life: Life): Promise<void> {
  const { app, options, root, state, logFile } = life;
  const { url, notes } = await listenOn(options.port ?? configuredPort(app.project.current()), (port) =>
    app.listen(port),
  );
  const runtime = { ...runtimeOf(app, root, url), flags: process.argv.slice(2).filter(lasting) };
  // Before the file tells others whom to signal.
  const supervision = superviseProcess(life);
  writeRuntimeFile(state, runtime);
  const database = app.storage.dialect === "sqlite" ? databaseFile(state) : undefined;
  watchPresence({ state, database, runtime, ...supervision });
  removeStartingMark(state);
  app.logger.info("daemon.ready", { url, pid: process.pid, version: VERSION, root });
  setTimeout(() => forgetCrashes(state), STEADY_AFTER).unref();
  const { mismatch } = app.seals;
  const problems = mismatch === null ? [] : [`${mismatch} ${errors.master_key_mismatch.next}`];
  await tell({ type: "ready", runtime, notes: [...notes, ...problems, ...unsetNote(app)] });
  if (!options.foreground && process.connected) process.disconnect?.();
  void logFile.flush();
}

// Here it can still be mended at once: it is the environment of whoever starts the daemon that counts.
function unsetNote({ project }: App): string[] {
  const names = new Set(project.missing().map(({ name }) => name));
  if (names.size === 0) return [];
  return [
    `magic.yaml names what is not set here: ${[...names].join(", ")}. Set those that you use, then \`magic daemon restart\`.`,
  ];
}

// What says where the daemon runs, and who started it how, belongs to one start; the rest is for the next one as well.
function lasting(flag: string): boolean {
  return !/^--(root|started-by|foreground|forget-sealed)\b/.test(flag);
}

function runtimeOf(app: App, root: string, url: string): RuntimeFile {
  const { port } = new URL(url);
  return {
    pid: process.pid,
    pid_started: processStarted(process.pid),
    started_at: rfc3339(Date.now()),
    host: app.host,
    port: Number(port),
    url,
    protocol: PROTOCOL,
    version: VERSION,
    root,
    ...app.credentials,
  };
}

/** Tells the command that started this process; nobody listens where it was started otherwise. */
function tell(message: ReadyMessage): Promise<void> {
  if (!process.send || !process.connected) {
    if (message.type === "failed") process.stderr.write(`${message.code}: ${message.detail}\n`);
    return Promise.resolve();
  }
  return new Promise((resolve) => void process.send?.(message, undefined, undefined, () => resolve()));
}
