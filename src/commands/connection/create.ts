// magic connection create
import { type CommandModule, defineCommand } from "#commands/command.ts";
import { clientOf } from "#commands/connection-of.ts";
import { given, objectValue } from "#commands/option-values.ts";
import type { Connection } from "#contract/wire/connections.ts";
import { showConnection } from "./show.ts";

interface Options {
  readonly provider?: string;
  readonly name?: string;
  readonly config?: string;
  readonly credentials?: string;
  readonly metadata?: string;
}

const command: CommandModule<Options> = defineCommand<Options>({
  configure: (command) =>
    command
      .option("--provider <id>", "the connector: see `magic connector list`")
      .option("--name <name>", "for people; by default the provider's id")
      .option("--config <json|@file>", 'what the connector asks for, e.g. \'{"url": "postgres://..."}\'')
      .option("--credentials <@file|->", "secrets, kept out of the shell's history")
      .option("--metadata <json>", "your own values"),
  async run(context) {
    const { options, output } = context;
    const { provider } = await context.need({ provider: { value: options.provider, flag: "--provider <id>" } });
    const body = given({
      provider,
      name: options.name,
      config: objectValue(options.config, "--config"),
      credentials: objectValue(options.credentials, "--credentials"),
      metadata: objectValue(options.metadata, "--metadata"),
    });
    const connection = await (await clientOf(context)).request<Connection>("POST", "/v1/connections", { body });
    output.result(connection, showConnection(connection));
  },
});
export default command;
