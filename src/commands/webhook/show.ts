// Webhooks and deliveries for people.
import { statusOf } from "#commands/connection/show.ts";
import type { Delivery, Webhook } from "#contract/wire/webhooks.ts";
import type { TextForm } from "#output/output.ts";
import { record } from "#output/table.ts";

export const showWebhook =
  (webhook: Webhook & { secret?: string }): TextForm =>
  (paint) =>
    record(
      {
        id: webhook.id,
        url: webhook.url,
        events: webhook.events.join(", "),
        status: statusOf(webhook.status, paint),
        description: webhook.description ?? undefined,
        secret: webhook.secret && paint.bold(webhook.secret),
      },
      paint,
    ) + (webhook.secret ? `\n\n${paint.yellow("The secret is shown only now.")}` : "");

export const showDelivery =
  (delivery: Delivery): TextForm =>
  (paint) =>
    record(
      {
        id: delivery.id,
        event: `${delivery.event_type} ${delivery.event_id}`,
        status: statusOf(delivery.status, paint),
        attempts: delivery.attempts.length,
        "response code": delivery.response_code,
        "next attempt": delivery.next_attempt_at ?? undefined,
        error: delivery.attempts.at(-1)?.error ?? undefined,
      },
      paint,
    );
