// /v1/clients: clients of the client-credentials flow.
import type { FastifyInstance } from "fastify";
import { Client, ClientWithSecret, CreateClient, type CreateKey } from "#contract/wire/credentials.ts";
import type { Credential, Credentials } from "#daemon/identity/credentials/credentials.ts";
import { commonMembers, credentialRoutes, grantRequest } from "./credential-routes.ts";

export function clientRoutes(app: FastifyInstance, { credentials }: { credentials: Credentials }): void {
  credentialRoutes<CreateKey>(app, credentials, {
    path: "/v1/clients",
    kind: "client",
    read: "clients:read",
    write: "clients:write",
    noun: "Client",
    words: { one: "client", many: "clients" },
    schemas: { item: Client, withSecret: ClientWithSecret, create: CreateClient },
    request: (body) => grantRequest("client", body),
    document: clientDocument,
    documentWithSecret: ({ credential, secret }) => ({ ...clientDocument(credential), client_secret: secret }),
  });
}

function clientDocument(credential: Credential) {
  return { id: credential.id, object: "client", client_id: credential.id, ...commonMembers(credential) };
}
