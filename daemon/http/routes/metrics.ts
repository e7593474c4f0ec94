// GET /metrics: Prometheus' text format. Local: names of models and controllers are nobody else's business.
import type { FastifyInstance } from "fastify";
import type { Metrics } from "#daemon/telemetry/metrics.ts";

export function metricsRoutes(app: FastifyInstance, { metrics }: { readonly metrics: Metrics }): void {
  const config = { scope: null, surface: "core", quiet: true, produces: ["text/plain"] } as const;
  app.get("/metrics", { config, schema: { hide: true } as object }, async (_request, reply) => {
    const { text, contentType } = await metrics.render();
    return reply.type(contentType).send(text);
  });
}
