// magic connection update: what is named changes, the rest stays.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { given, objectValue } from "#commands/option-values.ts";
import type { Connection } from "#contract/wire/connections.ts";
import { keptNumbers, wholeNumbers } from "#shared/json-text.ts";
import { showConnection } from "./show.ts";

export default defineCommand<{ name?: string; config?: string; credentials?: string; metadata?: string }>({
  configure: (command) =>
    command
      .argument("<id>", "the connection's id")
      .option("--name <name>", "for people")
      .option("--config <json|@file>", "merged into what is there; null removes a key")
      .option(
        "--credentials <@file|->",
        "merged into what is there; given again where --config leads to another address",
      )
      .option("--metadata <json>", "merged by key; null removes one"),
  async run(context) {
    const { options, output, args } = context;
    const body = given({
      name: options.name,
      config: await objectValue(options.config, "--config", wholeNumbers),
      credentials: await objectValue(options.credentials, "--credentials", wholeNumbers),
      metadata: await objectValue(options.metadata, "--metadata", keptNumbers),
    });
    const client = await clientOf(context);
    const connection = await client.request<Connection>("PATCH", `/v1/connections/${pathPart(args[0])}`, { body });
    output.result(connection, showConnection(connection));
  },
});
