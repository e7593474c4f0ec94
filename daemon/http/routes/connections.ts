// /v1/connections.
import type { FastifyInstance } from "fastify";
import type { ConnectionStatus } from "#contract/states.ts";
import {
  Connection,
  ConnectionsQuery,
  CreateConnection,
  DataObject,
  ObjectsQuery,
  PatchConnection,
} from "#contract/wire/connections.ts";
import { listOf } from "#contract/wire/list.ts";
import { Deleted, IdParams } from "#contract/wire/params.ts";
import type { Connections } from "#daemon/integrations/connections/connections.ts";
import { type ListOptions, pageInMemory } from "#daemon/storage/list.ts";
import { emptyBody } from "../empty-body.ts";

/** How long a test and a discovery may take: a caller waits for them, many no longer than half a minute. */
const CHECK_MS = 25_000;
const DISCOVERY_MS = 45_000;

export function connectionRoutes(app: FastifyInstance, { connections }: { connections: Connections }): void {
  const read = { scope: "connections:read", surface: "core" } as const;
  const write = { scope: "connections:write", surface: "core" } as const;
  const exactIntegersIn = ["config", "credentials", "metadata"];
  const tags = ["connections"];

  app.post<{ Body: CreateConnection }>(
    "/v1/connections",
    {
      config: { ...write, exactIntegersIn, survey: ({ body }) => connections.survey(body) },
      schema: {
        ...{ tags, operationId: "createConnection", summary: "Create a connection" },
        body: CreateConnection,
        response: { 201: Connection },
      },
    },
    async (request, reply) => reply.code(201).send(await connections.create(request.principal, request.body)),
  );

  app.get<{ Querystring: ListOptions & { provider?: string; status?: ConnectionStatus } }>(
    "/v1/connections",
    {
      config: read,
      schema: {
        ...{ tags, operationId: "listConnections", summary: "List connections" },
        querystring: ConnectionsQuery,
        response: { 200: listOf(Connection) },
      },
    },
    (request) => connections.list(request.principal, request.query),
  );

  app.get<{ Params: IdParams }>(
    "/v1/connections/:id",
    {
      config: read,
      schema: {
        ...{ tags, operationId: "getConnection", summary: "Get a connection" },
        params: IdParams,
        response: { 200: Connection },
      },
    },
    (request) => connections.get(request.principal, request.params.id),
  );

  app.patch<{ Params: IdParams; Body: PatchConnection }>(
    "/v1/connections/:id",
    {
      config: { ...write, exactIntegersIn },
      schema: {
        ...{
          tags,
          operationId: "updateConnection",
          summary: "Change a connection",
          description:
            "A change that would have live credentials sent to another place takes them given again in the same request: a 422 names them.",
        },
        params: IdParams,
        body: PatchConnection,
        response: { 200: Connection },
      },
    },
    (request) => connections.patch(request.principal, request.params.id, request.body),
  );

  app.delete<{ Params: IdParams }>(
    "/v1/connections/:id",
    {
      config: write,
      schema: {
        ...{
          tags,
          operationId: "deleteConnection",
          summary: "Delete a connection",
          description: "Its syncs are paused in the same transaction.",
        },
        params: IdParams,
        response: { 200: Deleted },
      },
    },
    async ({ principal, params: { id } }) => {
      await connections.remove(principal, id);
      return { id, object: "connection", deleted: true };
    },
  );

  app.post<{ Params: IdParams }>(
    "/v1/connections/:id/check",
    {
      config: write,
      preValidation: emptyBody,
      schema: {
        ...{ tags, operationId: "checkConnection", summary: "Test a connection now" },
        params: IdParams,
        response: { 200: Connection },
      },
    },
    (request) => connections.check(request.principal, request.params.id, AbortSignal.timeout(CHECK_MS)),
  );

  app.get<{ Params: IdParams; Querystring: ListOptions }>(
    "/v1/connections/:id/objects",
    {
      config: { ...read, fails: ["upstream_error", "upstream_timeout"] },
      schema: {
        ...{ tags, operationId: "listConnectionObjects", summary: "Discover what a connection offers" },
        params: IdParams,
        querystring: ObjectsQuery,
        response: { 200: listOf(DataObject) },
      },
    },
    async ({ principal, params, query }) => {
      const found = await connections.objects(principal, params.id, AbortSignal.timeout(DISCOVERY_MS));
      return pageInMemory(found, query, ({ name }) => name);
    },
  );
}
