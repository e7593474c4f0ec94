// magic webhook update: what is named changes, the rest stays.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { given, listValue } from "#commands/option-values.ts";
import type { Webhook } from "#contract/wire/webhooks.ts";
import { showWebhook } from "./show.ts";

export default defineCommand<{ url?: string; events?: string; description?: string; status?: string }>({
  configure: (command) =>
    command
      .argument("<id>", "the webhook's id")
      .option("--url <url>", "where events are posted")
      .option("--events <list>", "a,b")
      .option("--description <text>", "for people")
      .option("--status <status>", "enabled | disabled"),
  async run(context) {
    const { url, events, description, status } = context.options;
    const body = given({ url, events: listValue(events, "--events"), description, status });
    const client = await clientOf(context);
    const webhook = await client.request<Webhook>("PATCH", `/v1/webhooks/${pathPart(context.args[0])}`, { body });
    context.output.result(webhook, showWebhook(webhook));
  },
});
