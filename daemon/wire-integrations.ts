// Connections, syncs and webhooks over the daemon's foundation.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { startConnectionWorker } from "#shared/sync-worker.ts";
import { createTurns } from "#shared/turns.ts";
import { createEgress } from "./egress/egress.ts";
import type { Foundation } from "./foundation.ts";
import { connectionRoutes } from "./http/routes/connections.ts";
import { connectorRoutes } from "./http/routes/connectors.ts";
import { oauthRoutes } from "./http/routes/oauth.ts";
import { runRoutes } from "./http/routes/runs.ts";
import { syncRoutes } from "./http/routes/syncs.ts";
import { webhookRoutes } from "./http/routes/webhooks.ts";
import { createCatalogue } from "./integrations/catalogue/catalogue.ts";
import { type Connections, createConnections } from "./integrations/connections/connections.ts";
import { createKeepers } from "./integrations/connections/kept-tokens.ts";
import type { PlaceRules } from "./integrations/connections/places.ts";
import { connectionSecrets } from "./integrations/connections/secret.ts";
import { createSharedTurns } from "./integrations/connections/shared-turns.ts";
import { type ConnectedDatabase, databaseOf } from "./integrations/live/database.ts";
import { createExecution } from "./integrations/live/execution.ts";
import { takeOverStates } from "./integrations/live/former-states.ts";
import { manifestText, projectConnectors } from "./integrations/live/manifests.ts";
import { keepSpare } from "./integrations/live/spare-worker.ts";
import { createOAuth } from "./integrations/oauth/oauth.ts";
import { wayToProviders } from "./integrations/oauth/way-out.ts";
import { createLiveRuns } from "./integrations/syncs/live-runs.ts";
import { createSyncs } from "./integrations/syncs/syncs.ts";
import { createDeliveries, defaultSettings } from "./integrations/webhooks/deliveries.ts";
import { defaultRetention, keepDeliveries } from "./integrations/webhooks/retention.ts";
import { createWebhooks, openSecrets } from "./integrations/webhooks/webhooks.ts";
import { createJobs } from "./jobs/jobs.ts";

export interface Integrations {
  /** Declares the routes. */
  routes(app: FastifyInstance): void;
  /** For controllers: starts a run as the caller of the invocation. */
  trigger(principal: Principal, sync: string): Promise<{ id: string; status: string }>;
  /** For controllers: what a database of magic.yaml that names a live connection means now. */
  database(connection: string): Promise<ConnectedDatabase>;
  /** Begins to run what is due. */
  start(): Promise<void>;
}

export function wireIntegrations(foundation: Foundation, origin: () => string): Integrations {
  const { clock, logger, presence, project, seals, storage } = foundation;
  const seed = (): number => project.current().environment?.seed ?? 1;
  const jobs = createJobs({ storage, clock, logger, presence });
  foundation.onClose(() => jobs.stop());
  const allowPrivate = (): readonly string[] => project.current().egress?.allow_private ?? [];
  const egress = createEgress({ allowPrivate });
  foundation.onClose(() => egress.close());
  const toProviders = wayToProviders(foundation.env["MAGIC_HTTP_REWRITE"], allowPrivate);
  foundation.onClose(() => toProviders.close());
  const catalogue = createCatalogue(projectConnectors(foundation.root));
  // Only what magic.yaml declares under `secrets` can be referred to: a caller of the API must not read the environment.
  const secrets = connectionSecrets(seals.lasting("connections"), (kind, name) =>
    kind === "secret" ? project.current().secrets?.[name] || undefined : undefined,
  );
  const shared = storage.dialect === "postgres";
  const turns = shared ? createSharedTurns({ units: storage.units.idempotency, clock, presence }) : createTurns();
  const ends = {
    ...{ egress, root: foundation.root },
    manifest: (id: string) => manifestText(foundation.root, id),
    schema: async (id: string) => (await catalogue.get(id))?.config_schema ?? {},
  };
  const workers = keepSpare(startConnectionWorker);
  foundation.onClose(() => workers.close());
  const execution = createExecution({
    ...{ ...ends, clock, workers },
    keeperOf: createKeepers({ storage, secrets, clock }, turns, (id, last) => oauth.renew(id, last)),
    allowPrivate,
  });
  const webhookSealer = seals.lasting("webhooks");
  const delivering = () => {
    const { retry_schedule_s, timeout_s } = project.current().webhooks ?? {};
    return {
      retryScheduleS: retry_schedule_s ?? defaultSettings.retryScheduleS,
      timeoutS: timeout_s ?? defaultSettings.timeoutS,
    };
  };
  const deliveries = createDeliveries({
    ...{ storage, jobs, egress, clock, logger, settings: delivering },
    secretsOf: (webhook) => openSecrets(webhookSealer, webhook),
  });
  const retention = keepDeliveries({
    ...{ storage, clock, logger },
    kept: () => {
      const { retention_days: days, max_deliveries: count } = project.current().webhooks ?? {};
      return { days: days ?? defaultRetention.days, count: count ?? defaultRetention.count };
    },
    retryScheduleS: () => delivering().retryScheduleS,
  });
  foundation.onClose(retention.close);
  const webhooks = createWebhooks({ storage, sealer: webhookSealer, egress, clock, wake: deliveries.wake });
  const placeRules = async (provider: string): Promise<PlaceRules> => ({
    provider,
    manifest: await ends.manifest(provider),
    oauth: (await catalogue.oauth(provider)) ?? {},
    schema: await ends.schema(provider),
  });
  const oauth = createOAuth({
    ...{ storage, egress: toProviders, secrets, clock, origin, turns, placeRules, root: foundation.root },
    sealer: seals.lasting("oauth"),
    definitionOf: catalogue.oauth,
    onEvents: deliveries.wake,
  });
  const { fresh } = oauth;
  const live = createLiveRuns({
    ...{ storage, jobs, execution, secrets, fresh, clock, logger },
    doubt: (ids, signal) => connections.doubt(ids, signal),
    onEvents: deliveries.wake,
  });
  foundation.onClose(live.close);
  const connections: Connections = createConnections({
    ...{ storage, catalogue, secrets, execution, clock, seed, fresh, placeRules },
    onEvents: deliveries.wake,
    root: foundation.root,
    onRemoved: oauth.revoke,
    stopRuns: live.stop,
  });
  const syncs = createSyncs({ storage, catalogue, live, clock, seed });
  return {
    routes(app) {
      connectorRoutes(app, { catalogue });
      oauthRoutes(app, { oauth });
      connectionRoutes(app, { connections });
      syncRoutes(app, { syncs });
      runRoutes(app, { syncs });
      webhookRoutes(app, { webhooks });
    },
    trigger: (principal, sync) => syncs.trigger(principal, sync, {}),
    async database(id) {
      const record = await storage.units.connection.get({ id, environment: "live" });
      if (!record) throw new MagicError("not_found", `magic.yaml names the connection ${id}, which is no live one.`);
      return databaseOf(secrets.open(record), ends);
    },
    start: async () => {
      await takeOverStates(foundation.state, storage, logger);
      await live.start();
      await jobs.start();
    },
  };
}
