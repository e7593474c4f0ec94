// /v1/keys: API keys.
import type { FastifyInstance } from "fastify";
import { CreateKey, Key, KeyWithSecret } from "#contract/wire/credentials.ts";
import type { Credential, Credentials } from "#daemon/identity/credentials/credentials.ts";
import { commonMembers, credentialRoutes, grantRequest } from "./credential-routes.ts";

export function keyRoutes(app: FastifyInstance, { credentials }: { credentials: Credentials }): void {
  credentialRoutes<CreateKey>(app, credentials, {
    path: "/v1/keys",
    kind: "key",
    read: "keys:read",
    write: "keys:write",
    noun: "Key",
    words: { one: "key", many: "keys" },
    schemas: { item: Key, withSecret: KeyWithSecret, create: CreateKey },
    request: (body) => grantRequest("key", body),
    document: keyDocument,
    documentWithSecret: ({ credential, secret }) => ({ ...keyDocument(credential), secret }),
  });
}

function keyDocument(credential: Credential) {
  return { id: credential.id, object: "key", ...commonMembers(credential) };
}
