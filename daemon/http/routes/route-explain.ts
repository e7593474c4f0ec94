// POST /v1/route/explain: the route of a request, without sending it anywhere.
import type { FastifyInstance } from "fastify";
import { RouteExplainRequest, RouteExplanation } from "#contract/wire/route.ts";
import type { GatewayPipeline } from "#daemon/gateway/pipeline.ts";
import { COMPLETION_LIMIT } from "../body.ts";

export function routeExplainRoutes(
  app: FastifyInstance,
  { gateway }: { readonly gateway: Pick<GatewayPipeline, "explain"> },
): void {
  const config = {
    scope: "gateway:use",
    errors: "openai",
    surface: "gateway",
    produces: ["application/json"],
  } as const;
  const schema = {
    operationId: "explainRoute",
    summary: "Which model a request would go to, and why",
    body: RouteExplainRequest,
    response: { 200: RouteExplanation },
  };
  app.post<{ Body: RouteExplainRequest }>(
    "/v1/route/explain",
    { config, bodyLimit: COMPLETION_LIMIT, schema: schema as object },
    async (request) => {
      const { input, ...body } = request.body;
      return await gateway.explain({
        body: { messages: [], ...input, ...body },
        principal: request.principal,
        controller: null,
      });
    },
  );
}
