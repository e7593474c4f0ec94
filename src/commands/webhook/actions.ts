// magic webhook roll, test, redeliver: one POST each.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { type CommandModule, defineCommand } from "#commands/command.ts";
import { wholeOf } from "#commands/option-values.ts";
import type { Delivery, Webhook } from "#contract/wire/webhooks.ts";
import { showDelivery, showWebhook } from "./show.ts";

export const roll: CommandModule<{ overlap?: string }> = defineCommand<{ overlap?: string }>({
  configure: (command) =>
    command
      .argument("<id>", "the webhook's id")
      .option("--overlap <seconds>", "how long the old secret signs too; 0 ends it at once (default: a day)"),
  async run(context) {
    const overlap = wholeOf(context.options.overlap, "--overlap", 0);
    const body = overlap === undefined ? {} : { overlap_s: overlap };
    const client = await clientOf(context);
    const path = `/v1/webhooks/${pathPart(context.args[0])}/roll`;
    const webhook = await client.request<Webhook & { secret: string }>("POST", path, { body });
    context.output.result(webhook, showWebhook(webhook));
  },
});

export const test: CommandModule<Record<string, never>> = defineCommand({
  configure: (command) => command.argument("<id>", "the webhook's id"),
  async run(context) {
    const client = await clientOf(context);
    const path = `/v1/webhooks/${pathPart(context.args[0])}/test`;
    const delivery = await client.request<Delivery>("POST", path, { body: {} });
    context.output.result(delivery, showDelivery(delivery));
  },
});

export const redeliver: CommandModule<Record<string, never>> = defineCommand({
  configure: (command) => command.argument("<id>", "the webhook's id").argument("<delivery>", "the delivery's id"),
  async run(context) {
    const [id, delivery] = context.args.map(pathPart);
    const client = await clientOf(context);
    const again = await client.request<Delivery>("POST", `/v1/webhooks/${id}/deliveries/${delivery}/redeliver`, {
      body: {},
    });
    context.output.result(again, showDelivery(again));
  },
});
