// POST /v1/embeddings: OpenAI's, for OpenAI's wires and the sandbox.
import type { FastifyInstance } from "fastify";
import type { Gateway } from "#daemon/gateway/call.ts";
import { answerCall } from "../gateway-answer.ts";
import { useRawBodies } from "../raw-body.ts";

export function embeddingRoutes(app: FastifyInstance, { gateway }: { readonly gateway: Gateway }): void {
  const config = {
    scope: "gateway:use",
    errors: "openai",
    surface: "gateway",
    ownLine: true,
    ownSpan: true,
    produces: ["application/json"],
  } as const;
  const schema = { operationId: "createEmbedding", summary: "Embed texts" };
  app.register(async (scope) => {
    useRawBodies(scope);
    scope.post("/v1/embeddings", { config, schema: schema as object }, (request, reply) =>
      answerCall(gateway, "embeddings", request, reply),
    );
  });
}
