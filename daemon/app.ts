// Everything wired together, and nowhere else. Runs in the daemon's process and, for tests, in any other.
import type { FastifyInstance } from "fastify";
import { type Clock, systemClock } from "#shared/clock.ts";
import { stateFolder } from "#shared/paths.ts";
import { createSandboxGateway } from "./gateway/sandbox-gateway.ts";
import type { Activity } from "./http/activity.ts";
import type { Authenticator } from "./http/guards/authenticate.ts";
import { localAuthenticator } from "./http/guards/local-authenticator.ts";
import { createHttp } from "./http/listener.ts";
import { logHub } from "./http/log-hub.ts";
import { chatCompletionRoutes } from "./http/routes/chat-completions.ts";
import { daemonRoutes } from "./http/routes/daemon.ts";
import { embeddingRoutes } from "./http/routes/embeddings.ts";
import { type Check, healthRoutes } from "./http/routes/health.ts";
import { logRoutes } from "./http/routes/logs.ts";
import { metricsRoutes } from "./http/routes/metrics.ts";
import { modelRoutes } from "./http/routes/models.ts";
import { useUpgrades } from "./http/upgrade.ts";
import { type LocalCredentials, loadLocalCredentials } from "./identity/local-credentials.ts";
import { createLogger, type Level, type Logger, type LogSink } from "./telemetry/log.ts";
import type { LogFile } from "./telemetry/log-file.ts";
import { createLogHistory } from "./telemetry/log-history.ts";
import { createLogStream, type LogStream } from "./telemetry/log-stream.ts";
import { createMetrics, type Metrics } from "./telemetry/metrics.ts";
import { createTracer, type Tracer } from "./telemetry/trace.ts";

export interface AppConfig {
  /** The project's folder; state lies in `.magic` below it. */
  readonly root: string;
  /** Where to listen: by default 127.0.0.1 and any free port. */
  readonly host?: string;
  readonly port?: number;
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
  readonly logLevel?: Level;
  /** Where log lines go besides the live stream. */
  readonly logSinks?: readonly LogSink[];
  /** The log on disk: a sink, and what readers get who were away long. */
  readonly logFile?: LogFile;
  /** Flags of the daemon's command line that parts of it read, e.g. `allow-weak-sandbox`. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  /** True in the daemon's own process: reports its memory and event loop too. */
  readonly ownProcess?: boolean;
}

export interface App {
  readonly fastify: FastifyInstance;
  readonly root: string;
  readonly state: string;
  readonly credentials: LocalCredentials;
  readonly logger: Logger;
  readonly logStream: LogStream;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** The origin that it answers at; undefined before listen(). */
  readonly url: string | undefined;
  readonly activity: Activity;
  /** What magic.yaml says about the listener. */
  readonly project: { readonly port: number | undefined };
  /** Listens on `port`, by default on the configured one or any free one; resolves to the origin. Fails with EADDRINUSE. */
  listen(port?: number): Promise<string>;
  /** Answers what is under way, refuses what is new, then frees everything. Calling it again waits for the first call. */
  close(): Promise<void>;
}

export async function createApp(config: AppConfig): Promise<App> {
  const { root, host = "127.0.0.1", clock = systemClock } = config;
  const state = stateFolder(root);
  const credentials = await loadLocalCredentials(state);
  const logStream = createLogStream();
  const logger = createLogger({
    level: config.logLevel ?? "info",
    sinks: [logStream.sink, ...(config.logFile ? [config.logFile.sink] : []), ...(config.logSinks ?? [])],
    clock,
    secrets: () => Object.values(credentials),
  });
  const metrics = createMetrics({ process: config.ownProcess ?? false });
  const tracer = createTracer({ clock });
  const authenticator: Authenticator = localAuthenticator(credentials);
  const checks: Record<string, Check> = {};
  let draining = false;
  const { fastify, activity, hostGuard } = createHttp({
    host,
    clock,
    authenticator,
    logger,
    metrics,
    tracer,
    draining: () => draining,
  });

  healthRoutes(fastify, { checks, deployment: () => "development" });
  metricsRoutes(fastify, { metrics });
  const history = createLogHistory({ stream: logStream, file: config.logFile });
  logRoutes(fastify, { history, clock });
  const sockets = useUpgrades(fastify, { authenticator, hostGuard, host, draining: () => draining }, [
    logHub({ history, clock }),
  ]);
  activity.hold("open streams", () => sockets.open() > 0);
  daemonRoutes(fastify, { root, activity, isolation: async () => null });
  const gateway = createSandboxGateway();
  chatCompletionRoutes(fastify, { gateway });
  embeddingRoutes(fastify, { gateway });
  modelRoutes(fastify, { gateway });

  let url: string | undefined;
  let closing: Promise<void> | undefined;
  return {
    fastify,
    root,
    state,
    credentials,
    logger,
    logStream,
    metrics,
    tracer,
    get url() {
      return url;
    },
    activity,
    project: { port: undefined },
    async listen(port = config.port ?? 0) {
      await fastify.listen({ host, port });
      url = originOf(host, fastify);
      return url;
    },
    close() {
      draining = true;
      closing ??= (async () => {
        await fastify.close();
        await tracer.flush();
      })();
      return closing;
    },
  };
}

// A wildcard address cannot be called: name the loopback one instead.
function originOf(host: string, fastify: FastifyInstance): string {
  const address = fastify.server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
