// What keys, clients and gateway tokens have in common: create, list, get, roll, revoke under one path.
import type { FastifyInstance } from "fastify";
import { type TObject, Type } from "typebox";
import type { Scope } from "#contract/identity.ts";
import { type CreateKey, OVERLAP_S, Roll } from "#contract/wire/credentials.ts";
import { type ListQuery, listOf, listQuery } from "#contract/wire/list.ts";
import { IdParams } from "#contract/wire/params.ts";
import {
  type Credential,
  type CredentialRequest,
  type Credentials,
  idPrefixes,
  type WithSecret,
} from "#daemon/identity/credentials/credentials.ts";
import type { CredentialKind } from "#daemon/identity/credentials/secret.ts";
import { answerPage, pageOf } from "#daemon/storage/list.ts";
import { emptyBody } from "../empty-body.ts";

export interface CredentialRoutes<B> {
  readonly path: string;
  readonly kind: CredentialKind;
  readonly read: Scope;
  readonly write: Scope;
  /** For operation ids: `createKey`, `listKeys`. */
  readonly noun: string;
  readonly words: { readonly one: string; readonly many: string };
  readonly schemas: { readonly item: TObject; readonly withSecret: TObject; readonly create: TObject };
  readonly request: (body: B) => CredentialRequest;
  readonly document: (credential: Credential) => { readonly id: string };
  readonly documentWithSecret: (made: WithSecret) => object;
}

export function credentialRoutes<B>(app: FastifyInstance, credentials: Credentials, routes: CredentialRoutes<B>): void {
  const { path, kind, noun, words, schemas, document, documentWithSecret } = routes;
  const read = { scope: routes.read, surface: "core" } as const;
  const write = { scope: routes.write, surface: "core" } as const;
  const tags = [words.many];

  app.post(
    path,
    {
      config: write,
      schema: {
        tags,
        operationId: `create${noun}`,
        summary: `Create a ${words.one}`,
        description:
          "Its secret is in this answer alone. It cannot go beyond the scopes, tier, environment and end of its maker.",
        body: schemas.create,
        response: { 201: schemas.withSecret },
      },
    },
    async (request, reply) => {
      const made = await credentials.create(request.principal, routes.request(request.body as B));
      return reply.code(201).header("cache-control", "no-store").send(documentWithSecret(made));
    },
  );

  app.get<{ Querystring: ListQuery & { limit: number } }>(
    path,
    {
      config: read,
      schema: {
        tags,
        operationId: `list${noun}s`,
        summary: `List ${words.many}`,
        querystring: listQuery({}),
        response: { 200: listOf(schemas.item) },
      },
    },
    async (request) => {
      const page = pageOf(idPrefixes[kind], request.query);
      return answerPage(await credentials.list(request.principal, kind, page), page, document);
    },
  );

  app.get<{ Params: { id: string } }>(
    `${path}/:id`,
    {
      config: read,
      schema: {
        tags,
        operationId: `get${noun}`,
        summary: `Get a ${words.one}`,
        params: IdParams,
        response: { 200: schemas.item },
      },
    },
    async (request) => document(await credentials.get(request.principal, kind, request.params.id)),
  );

  app.post<{ Params: { id: string }; Body: Roll }>(
    `${path}/:id/roll`,
    {
      config: write,
      schema: {
        tags,
        operationId: `roll${noun}`,
        summary: `Roll a ${words.one}'s secret`,
        description: "Makes a second secret. Both work until the overlap ends, so that nothing is interrupted.",
        params: IdParams,
        body: Roll,
        response: { 200: schemas.withSecret },
      },
      preValidation: emptyBody,
    },
    async (request, reply) => {
      const overlap = request.body.overlap_s ?? OVERLAP_S;
      const made = await credentials.roll(request.principal, kind, request.params.id, overlap);
      return reply.header("cache-control", "no-store").send(documentWithSecret(made));
    },
  );

  app.delete<{ Params: { id: string } }>(
    `${path}/:id`,
    {
      config: write,
      schema: {
        tags,
        operationId: `revoke${noun}`,
        summary: `Revoke a ${words.one}`,
        description: "Ends all of its secrets, within a second everywhere.",
        params: IdParams,
        response: { 204: Type.Null({ description: "Revoked." }) },
      },
    },
    async (request, reply) => {
      await credentials.revoke(request.principal, kind, request.params.id);
      return reply.code(204).send();
    },
  );
}

/** What a key's or a client's maker asks for. */
export function grantRequest(kind: "key" | "client", body: CreateKey): CredentialRequest {
  const { name = kind, scopes, environment, tier, expires_at } = body as CreateKey & Partial<Credential>;
  return { kind, name, scopes: scopes as Credential["scopes"], environment, tier, expires_at: expires_at ?? undefined };
}

/** The members that all three kinds show. */
export function commonMembers(credential: Credential) {
  const { name, scopes, environment, tier, created_at, expires_at, revoked_at, secrets } = credential;
  return { name, scopes, environment, tier, created_at, expires_at, revoked_at, secrets };
}
