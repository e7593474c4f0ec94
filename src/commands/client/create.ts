// magic client create: its secret is printed this once.
import { createCredential } from "#client/credentials.ts";
import { defineCommand } from "#commands/command.ts";
import {
  type GrantOptions,
  given,
  grantOptions,
  listOf,
  showCredential,
  timeOf,
} from "#commands/credential-options.ts";
import { clientOf } from "#commands/credential-verbs.ts";

export default defineCommand<GrantOptions>({
  configure: (command) => {
    for (const option of grantOptions()) command.addOption(option);
  },
  async run(context) {
    const { options, globals, output } = context;
    const { scopes } = await context.need({ scopes: { value: listOf(options.scopes), flag: "--scopes <list>" } });
    const body = given({
      name: options.name,
      scopes,
      tier: options.tier,
      expires_at: timeOf(options.expires, "--expires"),
      environment: globals.live ? "live" : undefined,
    });
    const document = await createCredential(await clientOf(context), "client", body);
    output.result(document, showCredential(document));
  },
});
