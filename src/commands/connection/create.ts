// magic connection create; with --oauth the provider asks the user, in a browser, and the connection comes back with its tokens.
import { clientOf } from "#commands/client-of.ts";
import { type CommandModule, defineCommand } from "#commands/command.ts";
import { given, listValue, objectValue } from "#commands/option-values.ts";
import type { Connection } from "#contract/wire/connections.ts";
import { keptNumbers, wholeNumbers } from "#shared/json-text.ts";
import { authorize } from "./authorize.ts";
import { showConnection } from "./show.ts";

interface Options {
  readonly provider?: string;
  readonly name?: string;
  readonly config?: string;
  readonly credentials?: string;
  readonly metadata?: string;
  readonly oauth?: boolean;
  readonly scopes?: string;
  readonly browser?: boolean;
}

const command: CommandModule<Options> = defineCommand<Options>({
  handlesInterrupt: true,
  configure: (command) =>
    command
      .option("--provider <id>", "the connector: see `magic connector list`")
      .option("--name <name>", "for people; by default the provider's id")
      .option("--config <json|@file>", 'what the connector asks for, e.g. \'{"url": "postgres://..."}\'')
      .option("--credentials <@file|->", "secrets, kept out of the shell's history")
      .option("--metadata <json>", "your own values")
      .option("--oauth", "authorize it at the provider, in a browser; live only")
      .option("--scopes <list>", "with --oauth: what to ask the provider for (default: the connector's)")
      .option("--no-browser", "with --oauth: print the address alone"),
  async run(context) {
    const { options, output } = context;
    const { provider } = await context.need({ provider: { value: options.provider, flag: "--provider <id>" } });
    const body = given({
      provider,
      name: options.name,
      config: await objectValue(options.config, "--config", wholeNumbers),
      credentials: await objectValue(options.credentials, "--credentials", wholeNumbers),
      metadata: await objectValue(options.metadata, "--metadata", keptNumbers),
    });
    const client = await clientOf(context);
    const connection = options.oauth
      ? await authorize(
          client,
          { ...body, ...given({ scopes: listValue(options.scopes, "--scopes") }) },
          { ...context, browser: options.browser !== false },
        )
      : await client.request<Connection>("POST", "/v1/connections", { body, signal: context.signal });
    output.result(connection, showConnection(connection));
  },
});
export default command;
