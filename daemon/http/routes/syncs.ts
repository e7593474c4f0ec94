// /v1/syncs.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { RunStatus, SyncStatus } from "#contract/states.ts";
import { listOf } from "#contract/wire/list.ts";
import { Deleted, IdParams } from "#contract/wire/params.ts";
import { CreateSync, PatchSync, Run, RunsQuery, Sync, SyncsQuery, TriggerSync } from "#contract/wire/syncs.ts";
import type { Syncs, TriggerOptions } from "#daemon/integrations/syncs/syncs.ts";
import type { ListOptions } from "#daemon/storage/list.ts";
import { emptyBody } from "../empty-body.ts";

export function syncRoutes(app: FastifyInstance, { syncs }: { syncs: Syncs }): void {
  const read = { scope: "syncs:read", surface: "core" } as const;
  const write = { scope: "syncs:write", surface: "core" } as const;
  const trigger = { scope: "syncs:trigger", surface: "core" } as const;
  const survey = ({ principal, body }: FastifyRequest) => syncs.survey(principal, body);
  const exactIntegersIn = ["metadata"];
  const tags = ["syncs"];

  app.post<{ Body: CreateSync }>(
    "/v1/syncs",
    {
      config: { ...write, survey, exactIntegersIn },
      schema: {
        ...{ tags, operationId: "createSync", summary: "Create a sync" },
        body: CreateSync,
        response: { 201: Sync },
      },
    },
    async (request, reply) => reply.code(201).send(await syncs.create(request.principal, request.body)),
  );

  app.get<{ Querystring: ListOptions & { status?: SyncStatus; connection?: string } }>(
    "/v1/syncs",
    {
      config: read,
      schema: {
        ...{ tags, operationId: "listSyncs", summary: "List syncs" },
        querystring: SyncsQuery,
        response: { 200: listOf(Sync) },
      },
    },
    (request) => syncs.list(request.principal, request.query),
  );

  app.get<{ Params: IdParams }>(
    "/v1/syncs/:id",
    {
      config: read,
      schema: { ...{ tags, operationId: "getSync", summary: "Get a sync" }, params: IdParams, response: { 200: Sync } },
    },
    (request) => syncs.get(request.principal, request.params.id),
  );

  app.patch<{ Params: IdParams; Body: PatchSync }>(
    "/v1/syncs/:id",
    {
      config: { ...write, survey, exactIntegersIn, fails: ["connection_missing"] },
      schema: {
        ...{ tags, operationId: "updateSync", summary: "Change, pause or resume a sync" },
        params: IdParams,
        body: PatchSync,
        response: { 200: Sync },
      },
    },
    (request) => syncs.patch(request.principal, request.params.id, request.body),
  );

  app.delete<{ Params: IdParams }>(
    "/v1/syncs/:id",
    {
      config: write,
      schema: {
        ...{ tags, operationId: "deleteSync", summary: "Delete a sync and its runs" },
        params: IdParams,
        response: { 200: Deleted },
      },
    },
    async ({ principal, params: { id } }) => {
      await syncs.remove(principal, id);
      return { id, object: "sync", deleted: true };
    },
  );

  app.post<{ Params: IdParams; Body: TriggerOptions }>(
    "/v1/syncs/:id/trigger",
    {
      config: trigger,
      preValidation: emptyBody,
      schema: {
        ...{
          tags,
          operationId: "triggerSync",
          summary: "Run a sync now",
          description: "A run that is under way is answered, not doubled. In the sandbox it has completed already.",
        },
        params: IdParams,
        body: TriggerSync,
        response: { 202: Run },
      },
    },
    async (request, reply) =>
      reply.code(202).send(await syncs.trigger(request.principal, request.params.id, request.body)),
  );

  app.get<{ Params: IdParams; Querystring: ListOptions & { status?: RunStatus } }>(
    "/v1/syncs/:id/runs",
    {
      config: read,
      schema: {
        ...{ tags, operationId: "listRuns", summary: "List a sync's runs" },
        params: IdParams,
        querystring: RunsQuery,
        response: { 200: listOf(Run) },
      },
    },
    (request) => syncs.runs(request.principal, request.params.id, request.query),
  );
}
