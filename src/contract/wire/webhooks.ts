// Webhooks and their deliveries on the wire.
import { type Static, Type } from "typebox";
import { environments } from "../protocol.ts";
import { deliveryStates } from "../states.ts";
import { OVERLAP_S } from "./credentials.ts";
import { listQuery } from "./list.ts";
import { Nullable, Timestamp } from "./times.ts";

export const webhookEvents = ["sync.completed", "sync.failed", "connection.failed", "data.changed"] as const;
const deliveryStatuses = Object.keys(deliveryStates) as (keyof typeof deliveryStates)[];

const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: "http or https, on the public internet.",
  examples: ["https://example.com/hooks/magic"],
});
const Events = Type.Array(Type.Enum([...webhookEvents]), {
  minItems: 1,
  uniqueItems: true,
  examples: [["sync.completed", "sync.failed"]],
});
const Description = Nullable(Type.String({ maxLength: 500 }));

export const Webhook = Type.Object(
  {
    id: Type.String({ examples: ["wh_01kaj3m5t2w8e9x7c6v5b4n3m2"] }),
    object: Type.Literal("webhook"),
    url: Url,
    events: Events,
    status: Type.Enum(["enabled", "disabled"]),
    environment: Type.Enum([...environments]),
    description: Description,
    created_at: Timestamp("When it was made."),
    updated_at: Timestamp("When it last changed."),
  },
  { $id: "Webhook", description: "A subscription: events are posted to its URL, signed by Standard Webhooks." },
);
export type Webhook = Static<typeof Webhook>;

export const WebhookWithSecret = Type.Object(
  { ...Webhook.properties, secret: Type.String({ description: "Signs deliveries; shown only here." }) },
  { $id: "WebhookWithSecret" },
);

export const CreateWebhook = Type.Object(
  { url: Url, events: Events, description: Type.Optional(Description) },
  { additionalProperties: false, examples: [{ url: "https://example.com/hooks/magic", events: ["sync.failed"] }] },
);
export type CreateWebhook = Static<typeof CreateWebhook>;

export const PatchWebhook = Type.Object(
  {
    url: Type.Optional(Url),
    events: Type.Optional(Events),
    description: Type.Optional(Description),
    status: Type.Optional(Type.Enum(["enabled", "disabled"])),
  },
  { additionalProperties: false, description: "JSON Merge Patch (RFC 7396).", examples: [{ status: "enabled" }] },
);
export type PatchWebhook = Static<typeof PatchWebhook>;

export const RollWebhook = Type.Object(
  {
    overlap_s: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_592_000,
        default: OVERLAP_S,
        description: "How long the old secret signs too.",
      }),
    ),
  },
  { additionalProperties: false, examples: [{ overlap_s: 3600 }] },
);

export const Delivery = Type.Object(
  {
    id: Type.String({ examples: ["dlv_01kaj3m5t2w8e9x7c6v5b4n3m2"] }),
    object: Type.Literal("delivery"),
    webhook: Type.String(),
    event_id: Type.String({ description: "The `webhook-id` header: the same for every attempt and redelivery." }),
    event_type: Type.String(),
    status: Type.Enum(deliveryStatuses),
    payload: Type.Record(Type.String(), Type.Unknown()),
    attempts: Type.Array(
      Type.Object({
        at: Timestamp("When it was made."),
        response_code: Nullable(Type.Integer()),
        duration_ms: Type.Number(),
        error: Nullable(Type.String()),
      }),
    ),
    response_code: Nullable(Type.Integer({ description: "Of the last attempt." })),
    next_attempt_at: Nullable(Timestamp("When it is tried again.")),
    created_at: Timestamp("When the event happened."),
  },
  { $id: "Delivery", description: "One event on its way to one webhook." },
);
export type Delivery = Static<typeof Delivery>;

export const WebhooksQuery = listQuery({});
export const DeliveriesQuery = listQuery({
  status: Type.Optional(Type.Enum(deliveryStatuses, { description: "Only those in this status." })),
});
export const DeliveryParams = Type.Object({
  id: Type.String(),
  delivery: Type.String(),
});
