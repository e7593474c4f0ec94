// /v1/gateway-tokens: tokens for the AI gateway, each with whose calls they are, what they may use and what they may spend.
import type { FastifyInstance } from "fastify";
import { CreateGatewayToken, GatewayToken, GatewayTokenWithSecret } from "#contract/wire/credentials.ts";
import type { Credential, Credentials } from "#daemon/identity/credentials/credentials.ts";
import { commonMembers, credentialRoutes } from "./credential-routes.ts";

export function gatewayTokenRoutes(app: FastifyInstance, { credentials }: { credentials: Credentials }): void {
  credentialRoutes<CreateGatewayToken>(app, credentials, {
    path: "/v1/gateway-tokens",
    kind: "token",
    read: "tokens:read",
    write: "tokens:write",
    noun: "GatewayToken",
    words: { one: "gateway token", many: "gateway tokens" },
    schemas: { item: GatewayToken, withSecret: GatewayTokenWithSecret, create: CreateGatewayToken },
    request: (body) => ({
      kind: "token",
      name: body.name ?? "gateway token",
      scopes: ["gateway:use"],
      environment: body.environment as Credential["environment"] | undefined,
      gateway: {
        user: body.user ?? null,
        team: body.team ?? null,
        project: body.project ?? null,
        models: body.models ?? null,
        budget_usd: body.budget_usd ?? null,
      },
      expires_at: body.expires_at,
    }),
    document: tokenDocument,
    documentWithSecret: ({ credential, secret }) => ({ ...tokenDocument(credential), secret }),
  });
}

function tokenDocument(credential: Credential) {
  return { id: credential.id, object: "gateway_token", ...commonMembers(credential), ...credential.gateway };
}
