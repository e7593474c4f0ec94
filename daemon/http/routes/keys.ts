// /v1/keys: API keys.
import type { FastifyInstance } from "fastify";
import { CreateKey, Key, KeyWithSecret } from "#contract/wire/credentials.ts";
import type { Credential, Credentials } from "#daemon/identity/credentials/credentials.ts";
import { commonMembers, credentialRoutes } from "./credential-routes.ts";

export function keyRoutes(app: FastifyInstance, { credentials }: { credentials: Credentials }): void {
  credentialRoutes<CreateKey>(app, credentials, {
    path: "/v1/keys",
    kind: "key",
    read: "keys:read",
    write: "keys:write",
    noun: "Key",
    words: { one: "key", many: "keys" },
    schemas: { item: Key, withSecret: KeyWithSecret, create: CreateKey },
    request: ({ name = "key", scopes, environment, tier, expires_at }) => ({
      kind: "key",
      name,
      scopes: scopes as Credential["scopes"],
      environment: environment as Credential["environment"] | undefined,
      tier: tier as Credential["tier"] | undefined,
      expires_at,
    }),
    document: keyDocument,
    documentWithSecret: ({ credential, secret }) => ({ ...keyDocument(credential), secret }),
  });
}

function keyDocument(credential: Credential) {
  return { id: credential.id, object: "key", ...commonMembers(credential) };
}
