// Everything wired together, and nowhere else. Runs in the daemon's process and, for tests, in any other.
import type { FastifyInstance } from "fastify";
import { userStateFolder } from "#shared/paths.ts";
import { type Foundation, type FoundationConfig, layFoundation } from "./foundation.ts";
import type { GatewayPipeline } from "./gateway/pipeline.ts";
import type { Activity } from "./http/activity.ts";
import { useAudit } from "./http/audit.ts";
import { useDeprecation } from "./http/deprecation.ts";
import { useIdempotency } from "./http/idempotency.ts";
import { createHttp } from "./http/listener.ts";
import { logHub } from "./http/log-hub.ts";
import { useOpenApi } from "./http/openapi/document.ts";
import { useRateLimit } from "./http/rate-limit.ts";
import { auditRoutes } from "./http/routes/audit.ts";
import { authRoutes } from "./http/routes/auth.ts";
import { chatCompletionRoutes } from "./http/routes/chat-completions.ts";
import { clientRoutes } from "./http/routes/clients.ts";
import { controllerRoutes } from "./http/routes/controllers.ts";
import { daemonRoutes } from "./http/routes/daemon.ts";
import { developmentRoutes } from "./http/routes/development.ts";
import { docsRoutes } from "./http/routes/docs.ts";
import { embeddingRoutes } from "./http/routes/embeddings.ts";
import { gatewayTokenRoutes } from "./http/routes/gateway-tokens.ts";
import { type Check, healthRoutes } from "./http/routes/health.ts";
import { keyRoutes } from "./http/routes/keys.ts";
import { logRoutes } from "./http/routes/logs.ts";
import { metricsRoutes } from "./http/routes/metrics.ts";
import { modelRoutes } from "./http/routes/models.ts";
import { openApiRoutes } from "./http/routes/openapi.ts";
import { routeExplainRoutes } from "./http/routes/route-explain.ts";
import { traceRoutes } from "./http/routes/traces.ts";
import { usageRoutes } from "./http/routes/usage.ts";
import { useUpgrades } from "./http/upgrade.ts";
import { type Identity, openIdentity } from "./identity/identity.ts";
import { type Listening, listeningOf, originOf, publicHostOf, publicUrlOf } from "./listening.ts";
import { wireControllers } from "./wire-controllers.ts";
import { wireGateway } from "./wire-gateway.ts";
import { wireIntegrations } from "./wire-integrations.ts";
import { wireTraces } from "./wire-traces.ts";

export interface AppConfig extends FoundationConfig {
  /** Where to listen: by default what magic.yaml says, else 127.0.0.1. */
  readonly host?: string;
  /** By default any free port; the daemon's process asks for the one of magic.yaml. */
  readonly port?: number;
}

export interface App extends Omit<Foundation, "close" | "onClose"> {
  readonly identity: Identity;
  readonly fastify: FastifyInstance;
  /** The address that it listens at, a wildcard too. */
  readonly host: string;
  /** The origin that it answers at; undefined before listen(). */
  readonly url: string | undefined;
  readonly activity: Activity;
  /** Listens on `port`, by default on the configured one or any free one; resolves to the origin. Fails with EADDRINUSE. */
  listen(port?: number): Promise<string>;
  /** Ends calls of the gateway that are under way, streams by an error event: for a close that has waited long enough. */
  cut(): void;
  /** Answers what is under way, refuses what is new, then frees everything. Calling it again waits for the first call. */
  close(): Promise<void>;
}

export async function createApp(config: AppConfig): Promise<App> {
  const foundation = await layFoundation(config);
  try {
    const identity = await identify(foundation);
    foundation.onClose(identity.close);
    const listening = await listeningOf(foundation, config);
    return wire(foundation, identity, await wireGateway(foundation), { ...config, listening });
  } catch (error) {
    await foundation.close();
    throw error;
  }
}

function identify({
  storage,
  seals,
  root,
  env,
  credentials,
  clock,
  logger,
  project,
  presence,
}: Foundation): Promise<Identity> {
  return openIdentity({
    storage,
    seals,
    root,
    userState: userStateFolder(env),
    local: credentials,
    clock,
    logger,
    presence,
    settings: () => {
      const { environment, auth, audit } = project.current();
      return {
        tier: environment?.tier ?? "starter",
        accessTokenTtlS: auth?.access_token_ttl_s ?? 900,
        issuer: auth?.issuer ?? publicUrlOf(project)?.origin ?? null,
        auditRetentionDays: audit?.retention_days ?? null,
      };
    },
  });
}

interface WiredConfig extends AppConfig {
  readonly listening: Listening;
}

function wire(foundation: Foundation, identity: Identity, gateway: GatewayPipeline, config: WiredConfig): App {
  const { root, clock, logger, metrics, tracer, project, seals, storage, history } = foundation;
  const { authenticator } = identity;
  const { listening } = config;
  const { host, tls } = listening;
  let url: string | undefined;
  let draining = false;
  const publicUrl = () => publicUrlOf(project);
  const publicHost = () => publicHostOf(project);
  const { fastify, activity, hostGuard, closeIdle } = createHttp({
    host,
    hostNames: listening.names,
    publicHost,
    tls,
    clock,
    authenticator,
    logger,
    metrics,
    tracer,
    draining: () => draining,
    onUnroutable: identity.audit.record,
  });

  useRateLimit(fastify, identity.rateLimiter);
  foundation.onClose(useAudit(fastify, identity.audit));
  useIdempotency(fastify, identity.idempotency);
  useDeprecation(fastify);
  const openApi = useOpenApi(fastify);

  const checks: Record<string, Check> = { storage: storage.check };
  healthRoutes(fastify, { checks, deployment: () => project.current().environment?.deployment ?? "development" });
  metricsRoutes(fastify, { metrics, publicHost });
  const origin = () => publicUrl()?.origin ?? url ?? "http://127.0.0.1";
  openApiRoutes(fastify, { openApi });
  docsRoutes(fastify, { openApi, origin });
  authRoutes(fastify, { ...identity, publicOrigin: () => publicUrl()?.origin, encrypted: tls !== undefined });
  keyRoutes(fastify, identity);
  clientRoutes(fastify, identity);
  gatewayTokenRoutes(fastify, identity);
  auditRoutes(fastify, identity);
  logRoutes(fastify, { history, clock });
  const upgrades = [logHub({ history, clock })];
  const sockets = useUpgrades(
    fastify,
    {
      ...{ authenticator, hostGuard, host, newestOn: activity.newestOn },
      ...{ draining: () => draining, onAnswer: identity.audit.record },
    },
    upgrades,
  );
  activity.hold("open streams", () => sockets.open() > 0);
  activity.hold("scheduled work", () => storage.units.job.pending());

  chatCompletionRoutes(fastify, { gateway });
  embeddingRoutes(fastify, { gateway });
  modelRoutes(fastify, { gateway });
  routeExplainRoutes(fastify, { gateway });
  usageRoutes(fastify, { gateway });
  traceRoutes(fastify, wireTraces(foundation));

  const integrations = wireIntegrations(foundation, origin);
  integrations.routes(fastify);

  tellRestartNeeded(project, logger);
  tellPublicUrl(project, logger);
  const allowWeakSandbox = config.flags?.["allow-weak-sandbox"] === true;
  const controllers = wireControllers(foundation, {
    gateway,
    syncs: { trigger: ({ principal, sync }) => integrations.trigger(principal, sync) },
    connectedDatabase: integrations.database,
    allowWeakSandbox,
    prewarm: config.ownProcess === true,
  });
  controllerRoutes(fastify, { controllers });
  developmentRoutes(fastify, { controllers });
  daemonRoutes(fastify, { root, activity, isolation: async () => controllers.isolationNow(), seals, project });

  let started: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  return {
    ...foundation,
    identity,
    fastify,
    host,
    activity,
    get url() {
      return url;
    },
    async listen(port = config.port ?? 0) {
      // Once, also when the first port is taken and another one is tried.
      started ??= integrations.start();
      await started;
      await fastify.listen({ host, port });
      url = originOf(listening, fastify);
      await identity.issuers.listening(url);
      return url;
    },
    cut: () => gateway.cut(),
    close() {
      draining = true;
      closing ??= closeListener(fastify, closeIdle).then(foundation.close);
      return closing;
    },
  };
}

// Everything of magic.yaml is live but where the daemon listens.
function tellRestartNeeded(project: Foundation["project"], logger: Foundation["logger"]): void {
  const listener = () => JSON.stringify([project.current().daemon?.host, project.current().daemon?.port]);
  const atStart = listener();
  project.onChange(() => {
    if (listener() !== atStart) logger.warn("project.restart_needed", { keys: ["daemon.host", "daemon.port"] });
  });
}

// What a variable holds is seen here first.
function tellPublicUrl(project: Foundation["project"], logger: Foundation["logger"]): void {
  const tell = () => {
    const given = project.current().daemon?.public_url;
    if (given && !publicUrlOf(project))
      logger.warn("project.public_url_ignored", { detail: "It is no origin, such as https://magic.example.com." });
  };
  tell();
  project.onChange(tell);
}

// The server closes the connections that are idle now; one whose answer ends later is idle only then, and would be waited for
// until its caller hangs up.
async function closeListener(fastify: FastifyInstance, closeIdle: () => void): Promise<void> {
  const timer = setInterval(closeIdle, 50);
  await fastify.close().finally(() => clearInterval(timer));
}
