// magic webhook create: the signing secret is printed this once.
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { given, listValue } from "#commands/option-values.ts";
import { type Webhook, webhookEvents } from "#contract/wire/webhooks.ts";
import { showWebhook } from "./show.ts";

export default defineCommand<{ url?: string; events?: string; description?: string }>({
  configure: (command) =>
    command
      .option("--url <url>", "where events are posted")
      .option("--events <list>", `separated by commas: ${webhookEvents.join(", ")}`)
      .option("--description <text>", "for people"),
  async run(context) {
    const { options, output } = context;
    const { url, events } = await context.need({
      url: { value: options.url, flag: "--url <url>" },
      events: { value: listValue(options.events, "--events"), flag: "--events <list>" },
    });
    const body = given({ url, events, description: options.description });
    const client = await clientOf(context);
    const webhook = await client.request<Webhook & { secret: string }>("POST", "/v1/webhooks", { body });
    output.result(webhook, showWebhook(webhook));
  },
});
