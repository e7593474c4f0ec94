// What every part of the daemon stands on: clock, log, metrics, traces, configuration, storage, credentials. Made once by
// app.ts, in the order in which the parts need each other, and freed in the opposite one.
import { type Clock, systemClock } from "#shared/clock.ts";
import type { LocalCredentials } from "#shared/local-credentials.ts";
import { stateFolder, userStateFolder } from "#shared/paths.ts";
import { loadLocalCredentials } from "./identity/local-credentials.ts";
import { openProject, type Project } from "./project.ts";
import { openSeals, type Seals } from "./secrets/seals.ts";
import { openStorage } from "./storage/open.ts";
import { endPredecessor, noteProcess } from "./storage/predecessor.ts";
import { createPresence, type Presence } from "./storage/presence.ts";
import type { Storage } from "./storage/storage.ts";
import { createLogger, errorFields, type Level, type Logger } from "./telemetry/log.ts";
import type { LogFile } from "./telemetry/log-file.ts";
import { createLogHistory, type LogHistory } from "./telemetry/log-history.ts";
import { createLogStream, type LogStream } from "./telemetry/log-stream.ts";
import { createMetrics, type Metrics } from "./telemetry/metrics.ts";
import { createTracer, type Tracer } from "./telemetry/trace.ts";

export interface FoundationConfig {
  /** The project's folder; state lies in `.magic` below it. */
  readonly root: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
  /** By default the one of magic.yaml, else info. */
  readonly logLevel?: Level;
  /** Where log lines go; by default a stream of its own. */
  readonly logStream?: LogStream;
  /** The same lines on disk: what readers get who were away long. */
  readonly logFile?: LogFile;
  /** False: magic.yaml is read once. By default it is watched in the daemon's own process. */
  readonly watch?: boolean;
  /** True in the daemon's own process: reports its memory and event loop too. */
  readonly ownProcess?: boolean;
  /** Called when the daemon cannot go on, because storage died. */
  readonly onFatal?: (error: Error) => void;
  /** Flags of the daemon's command line that parts of it read, e.g. `allow-weak-sandbox`. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  /** Storage that is being opened already; by default that of the root, or of MAGIC_DATABASE_URL. */
  readonly storage?: Promise<Storage>;
}

export interface Foundation {
  readonly root: string;
  readonly state: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly logStream: LogStream;
  readonly history: LogHistory;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  readonly project: Project;
  readonly storage: Storage;
  readonly credentials: LocalCredentials;
  readonly seals: Seals;
  readonly presence: Presence;
  /** Runs when the app closes, after the listener: the last one added first. */
  onClose(free: () => Promise<void> | void): void;
  close(): Promise<void>;
}

/** @throws `config_invalid`, `state_unusable`, `database_corrupt`: whatever keeps the daemon from starting. */
export async function layFoundation(config: FoundationConfig): Promise<Foundation> {
  const { root, env = process.env, clock = systemClock } = config;
  const state = stateFolder(root);
  const known = new Set<string>();
  let secrets: readonly string[] = [];
  const logStream = config.logStream ?? createLogStream();
  let minimum: Level = config.logLevel ?? "info";
  const logger = createLogger({
    minimum: () => minimum,
    sinks: [logStream.sink],
    clock,
    secrets: () => secrets,
  });
  const opening =
    config.storage ??
    openStorage({ root, databaseUrl: env["MAGIC_DATABASE_URL"] || undefined, onFatal: config.onFatal });
  const forget = config.flags?.["forget-sealed"] === true;
  const opened = await openAll({
    credentials: loadLocalCredentials(state),
    project: openProject({ root, env, logger, watch: config.watch ?? config.ownProcess ?? false }),
    storage: opening,
    seals: opening.then((storage) => openSeals({ storage, home: userStateFolder(env), forget, clock, logger })),
  });
  const { credentials, project, storage } = opened;
  // Only whoever holds the root's lock knows that the daemon before it is dead.
  if (config.ownProcess && storage.dialect === "postgres")
    await endPredecessor(state, storage.units, clock).catch((error: unknown) =>
      logger.warn("storage.predecessor", errorFields(error)),
    );
  const adopt = () => {
    for (const secret of [...Object.values(credentials), ...project.secrets()]) known.add(secret);
    secrets = [...known];
    minimum = config.logLevel ?? project.current().daemon?.log_level ?? "info";
  };
  adopt();
  project.onChange(adopt);
  const tracer = createTracer({ clock });
  const presence = createPresence(storage, clock, (process) => {
    if (config.ownProcess) noteProcess(state, process);
  });
  const frees: (() => Promise<void> | void)[] = [
    () => storage.close(),
    () => presence.close(),
    () => tracer.flush(),
    () => project.close(),
  ];
  return {
    root,
    state,
    env,
    clock,
    logger,
    logStream,
    history: createLogHistory({ stream: logStream, file: config.logFile }),
    metrics: createMetrics({ process: config.ownProcess ?? false }),
    tracer,
    ...opened,
    presence,
    onClose: (free) => void frees.push(free),
    async close() {
      for (const free of frees.splice(0).reverse())
        await Promise.resolve(free()).catch((error: unknown) => logger.error("close.failed", errorFields(error)));
    },
  };
}

// All at once, because each waits for the disk. When one fails, the others are not left open.
async function openAll<T extends { project: Promise<Project>; storage: Promise<Storage> }>(
  opening: T,
): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  try {
    await Promise.all(Object.values(opening));
  } catch (error) {
    for (const one of [opening.project, opening.storage])
      await one.then((opened) => opened.close()).catch(() => undefined);
    throw error;
  }
  const values = Object.entries(opening).map(async ([name, value]) => [name, await value] as const);
  return Object.fromEntries(await Promise.all(values)) as { [K in keyof T]: Awaited<T[K]> };
}
