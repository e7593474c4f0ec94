// POST /v1/embeddings: OpenAI's, for OpenAI's wires and the sandbox.
import type { FastifyInstance } from "fastify";
import { EmbeddingRequest } from "#contract/wire/embeddings.ts";
import { IdempotencyKeyHeader } from "#contract/wire/params.ts";
import type { Gateway } from "#daemon/gateway/call.ts";
import { answerCall } from "../gateway-answer.ts";
import { judgedLater, useRawBodies } from "../raw-body.ts";

export function embeddingRoutes(app: FastifyInstance, { gateway }: { readonly gateway: Gateway }): void {
  const config = {
    scope: "gateway:use",
    errors: "openai",
    surface: "gateway",
    ownLine: true,
    ownSpan: true,
    produces: ["application/json"],
  } as const;
  const schema = {
    operationId: "createEmbedding",
    summary: "Embed texts",
    headers: IdempotencyKeyHeader,
    body: EmbeddingRequest,
  };
  app.register(async (scope) => {
    useRawBodies(scope);
    scope.post("/v1/embeddings", { config, schema: schema as object, ...judgedLater }, (request, reply) =>
      answerCall(gateway, "embeddings", request, reply),
    );
  });
}
