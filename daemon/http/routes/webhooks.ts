// /v1/webhooks.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { DeliveryStatus } from "#contract/states.ts";
import { OVERLAP_S } from "#contract/wire/credentials.ts";
import { listOf } from "#contract/wire/list.ts";
import { Deleted, IdParams } from "#contract/wire/params.ts";
import {
  CreateWebhook,
  DeliveriesQuery,
  Delivery,
  DeliveryParams,
  PatchWebhook,
  RollWebhook,
  Webhook,
  WebhooksQuery,
  WebhookWithSecret,
} from "#contract/wire/webhooks.ts";
import type { Webhooks } from "#daemon/integrations/webhooks/webhooks.ts";
import type { ListOptions } from "#daemon/storage/list.ts";
import { emptyBody } from "../empty-body.ts";
import { liveOnly } from "../live-only.ts";

export function webhookRoutes(app: FastifyInstance, { webhooks }: { webhooks: Webhooks }): void {
  const core = { surface: "core" as const };
  const read = { config: { ...core, scope: "webhooks:read" as const }, onRequest: liveOnly };
  const write = {
    config: { ...core, scope: "webhooks:write" as const },
    onRequest: liveOnly,
    preValidation: emptyBody,
  };
  const survey = ({ body }: FastifyRequest) => webhooks.survey(body);
  const surveyed = { config: { ...write.config, survey }, onRequest: liveOnly };
  const tags = ["webhooks"];

  app.post<{ Body: CreateWebhook }>(
    "/v1/webhooks",
    {
      ...surveyed,
      schema: {
        ...{
          tags,
          operationId: "createWebhook",
          summary: "Create a webhook",
          description: "Its secret is in this answer alone.",
        },
        body: CreateWebhook,
        response: { 201: WebhookWithSecret },
      },
    },
    async (request, reply) =>
      reply
        .code(201)
        .header("cache-control", "no-store")
        .send(await webhooks.create(request.principal, request.body)),
  );

  app.get<{ Querystring: ListOptions }>(
    "/v1/webhooks",
    {
      ...read,
      schema: {
        ...{ tags, operationId: "listWebhooks", summary: "List webhooks" },
        querystring: WebhooksQuery,
        response: { 200: listOf(Webhook) },
      },
    },
    (request) => webhooks.list(request.principal, request.query),
  );

  app.get<{ Params: IdParams }>(
    "/v1/webhooks/:id",
    {
      ...read,
      schema: {
        ...{ tags, operationId: "getWebhook", summary: "Get a webhook" },
        params: IdParams,
        response: { 200: Webhook },
      },
    },
    (request) => webhooks.get(request.principal, request.params.id),
  );

  app.patch<{ Params: IdParams; Body: PatchWebhook }>(
    "/v1/webhooks/:id",
    {
      ...surveyed,
      schema: {
        ...{ tags, operationId: "updateWebhook", summary: "Change, enable or disable a webhook" },
        params: IdParams,
        body: PatchWebhook,
        response: { 200: Webhook },
      },
    },
    (request) => webhooks.patch(request.principal, request.params.id, request.body),
  );

  app.delete<{ Params: IdParams }>(
    "/v1/webhooks/:id",
    {
      ...read,
      config: write.config,
      schema: {
        ...{ tags, operationId: "deleteWebhook", summary: "Delete a webhook and its deliveries" },
        params: IdParams,
        response: { 200: Deleted },
      },
    },
    async ({ principal, params: { id } }) => {
      await webhooks.remove(principal, id);
      return { id, object: "webhook", deleted: true };
    },
  );

  app.post<{ Params: IdParams; Body: { overlap_s?: number } }>(
    "/v1/webhooks/:id/roll",
    {
      ...write,
      schema: {
        ...{ tags, operationId: "rollWebhook", summary: "Roll a webhook's secret" },
        params: IdParams,
        body: RollWebhook,
        response: { 200: WebhookWithSecret },
      },
    },
    async (request, reply) =>
      reply
        .header("cache-control", "no-store")
        .send(await webhooks.roll(request.principal, request.params.id, request.body.overlap_s ?? OVERLAP_S)),
  );

  app.post<{ Params: IdParams }>(
    "/v1/webhooks/:id/test",
    {
      ...write,
      schema: {
        ...{ tags, operationId: "testWebhook", summary: "Send a test event" },
        params: IdParams,
        response: { 202: Delivery },
      },
    },
    async (request, reply) => reply.code(202).send(await webhooks.test(request.principal, request.params.id)),
  );

  app.get<{ Params: IdParams; Querystring: ListOptions & { status?: DeliveryStatus } }>(
    "/v1/webhooks/:id/deliveries",
    {
      ...read,
      schema: {
        ...{ tags, operationId: "listDeliveries", summary: "List a webhook's deliveries" },
        params: IdParams,
        querystring: DeliveriesQuery,
        response: { 200: listOf(Delivery) },
      },
    },
    (request) => webhooks.deliveries(request.principal, request.params.id, request.query),
  );

  app.post<{ Params: { id: string; delivery: string } }>(
    "/v1/webhooks/:id/deliveries/:delivery/redeliver",
    {
      ...write,
      schema: {
        ...{
          tags,
          operationId: "redeliver",
          summary: "Deliver an event again",
          description: "With the same id and body.",
        },
        params: DeliveryParams,
        response: { 202: Delivery },
      },
    },
    async (request, reply) =>
      reply.code(202).send(await webhooks.redeliver(request.principal, request.params.id, request.params.delivery)),
  );
}
