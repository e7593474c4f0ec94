// POST /v1/chat/completions: OpenAI's, for every provider.
import type { FastifyInstance } from "fastify";
import type { Gateway } from "#daemon/gateway/call.ts";
import { answerCall } from "../gateway-answer.ts";
import { useRawBodies } from "../raw-body.ts";

export function chatCompletionRoutes(app: FastifyInstance, { gateway }: { readonly gateway: Gateway }): void {
  const config = { scope: "gateway:use", errors: "openai", surface: "gateway", ownLine: true, ownSpan: true } as const;
  const schema = { operationId: "createChatCompletion", summary: "Create a chat completion, streamed or whole" };
  app.register(async (scope) => {
    useRawBodies(scope);
    scope.post("/v1/chat/completions", { config, schema: schema as object }, (request, reply) =>
      answerCall(gateway, "chat", request, reply),
    );
  });
}
