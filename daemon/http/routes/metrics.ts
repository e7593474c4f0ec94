// GET /metrics: Prometheus' text format. Local: names of models and controllers are nobody else's business.
import type { FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import { isLoopback } from "#shared/loopback.ts";

export interface MetricsServices {
  readonly metrics: Metrics;
  /** A name by which a proxy passes on what comes from elsewhere. */
  readonly publicHost: () => string | undefined;
}

export function metricsRoutes(app: FastifyInstance, { metrics, publicHost }: MetricsServices): void {
  const config = { scope: null, surface: "core", quiet: true, produces: ["text/plain"] } as const;
  app.get("/metrics", { config, schema: { hide: true } as object }, async (request, reply) => {
    const name = request.hostname.toLowerCase().replace(/^\[|\]$/g, "");
    if (!isLoopback(request.raw.socket.remoteAddress) || (name === publicHost() && !isLoopback(name)))
      throw new MagicError("insufficient_scope", "Metrics are answered to this machine alone.");
    const { text, contentType } = await metrics.render();
    return reply.type(contentType).send(text);
  });
}
