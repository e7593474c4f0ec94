// POST /v1/chat/completions: OpenAI's, for every provider.
import type { FastifyInstance } from "fastify";
import { chatRequestSchema } from "#contract/wire/chat.ts";
import { IdempotencyKeyHeader } from "#contract/wire/params.ts";
import type { Gateway } from "#daemon/gateway/call.ts";
import { answerCall } from "../gateway-answer.ts";
import { judgedLater, useRawBodies } from "../raw-body.ts";

export function chatCompletionRoutes(app: FastifyInstance, { gateway }: { readonly gateway: Gateway }): void {
  const config = { scope: "gateway:use", errors: "openai", surface: "gateway", ownLine: true, ownSpan: true } as const;
  const schema = {
    operationId: "createChatCompletion",
    summary: "Create a chat completion, streamed or whole",
    headers: IdempotencyKeyHeader,
    body: withoutDiscriminators(),
  };
  app.register(async (scope) => {
    useRawBodies(scope);
    scope.post("/v1/chat/completions", { config, schema: schema as object, ...judgedLater }, (request, reply) =>
      answerCall(gateway, "chat", request, reply),
    );
  });
}

// `discriminator`, and with it a `oneOf` of one schema, is for the validator: in OpenAPI it selects among named schemas alone.
function withoutDiscriminators(): object {
  const text = JSON.stringify(chatRequestSchema, (key, value) => {
    if (key === "discriminator") return undefined;
    return value?.oneOf?.length === 1 ? value.oneOf[0] : value;
  });
  return JSON.parse(text) as object;
}
