// /openapi.json: the API's description, made from its schemas.
import type { FastifyInstance } from "fastify";
import type { OpenApi } from "../openapi/document.ts";

export function openApiRoutes(app: FastifyInstance, { openApi }: { openApi: OpenApi }): void {
  app.get(
    "/openapi.json",
    {
      config: { scope: null, surface: "core", action: "openapi.get" },
      schema: { tags: ["service"], operationId: "getOpenApi", summary: "Get this document" },
    },
    async (_request, reply) => reply.header("cache-control", "public, max-age=60").send(await openApi.document()),
  );
}
