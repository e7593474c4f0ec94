// Connections, syncs and webhooks over the daemon's foundation.
import type { FastifyInstance } from "fastify";
import { userStateFolder } from "#shared/paths.ts";
import type { Foundation } from "./foundation.ts";
import { connectionRoutes } from "./http/routes/connections.ts";
import { connectorRoutes } from "./http/routes/connectors.ts";
import { runRoutes } from "./http/routes/runs.ts";
import { syncRoutes } from "./http/routes/syncs.ts";
import { createCatalogue } from "./integrations/catalogue/catalogue.ts";
import { createConnections } from "./integrations/connections/connections.ts";
import { connectionSecrets } from "./integrations/connections/secret.ts";
import type { SyncExecution } from "./integrations/execution.ts";
import { absentExecution } from "./integrations/syncs/absent-execution.ts";
import { createLiveRuns } from "./integrations/syncs/live-runs.ts";
import { createSyncs } from "./integrations/syncs/syncs.ts";
import { createJobs } from "./jobs/jobs.ts";
import { openMasterKey } from "./secrets/master-key.ts";
import { createSealer } from "./secrets/sealer.ts";

export interface Integrations {
  /** Declares the routes. */
  routes(app: FastifyInstance): void;
  /** Begins to run what is due. */
  start(): Promise<void>;
}

export function wireIntegrations(foundation: Foundation, execution: SyncExecution = absentExecution): Integrations {
  const { clock, env, logger, project, storage } = foundation;
  const masterKey = openMasterKey(userStateFolder(env));
  const seed = (): number => project.current().environment?.seed ?? 1;
  const jobs = createJobs({ storage, clock, logger });
  foundation.onClose(() => jobs.stop());
  const catalogue = createCatalogue();
  // Only what magic.yaml declares under `secrets` can be referred to: a caller of the API must not read the environment.
  const secrets = connectionSecrets(createSealer(masterKey, "connections"), (kind, name) =>
    kind === "secret" ? project.current().secrets?.[name] : undefined,
  );
  const live = createLiveRuns({ storage, jobs, execution, secrets, clock, logger, onEvents: () => {} });
  const connections = createConnections({
    ...{ storage, catalogue, secrets, execution, clock, seed },
    stopRuns: live.stop,
    onFailed: async () => {},
  });
  const syncs = createSyncs({ storage, catalogue, live, clock, seed });
  return {
    routes(app) {
      connectorRoutes(app, { catalogue });
      connectionRoutes(app, { connections });
      syncRoutes(app, { syncs });
      runRoutes(app, { syncs });
    },
    start: () => jobs.start(),
  };
}
