// magic token create: a token for the AI gateway; its secret is printed this once.
import { createCredential } from "#client/credentials.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { showCredential } from "#commands/credential-options.ts";
import { given, listValue, numberOf, timeOf } from "#commands/option-values.ts";

interface Options {
  readonly name?: string;
  readonly user?: string;
  readonly team?: string;
  readonly project?: string;
  readonly models?: string;
  readonly budgetUsd?: string;
  readonly expires?: string;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .option("--name <name>", "a name for people")
      .option("--user <user>", "whose calls these are")
      .option("--team <team>", "their team")
      .option("--project <project>", "their project")
      .option("--models <list>", "models that it may use, separated by commas; * stands for any part")
      .option("--budget-usd <usd>", "what it may spend in its life")
      .option("--expires <time>", "when it ends, e.g. 2027-01-01T00:00:00Z"),
  async run(context) {
    const { options, globals, output } = context;
    const body = given({
      name: options.name,
      user: options.user,
      team: options.team,
      project: options.project,
      models: listValue(options.models, "--models"),
      budget_usd: numberOf(options.budgetUsd, "--budget-usd", 0),
      expires_at: timeOf(options.expires, "--expires"),
      environment: globals.live ? "live" : undefined,
    });
    const document = await createCredential(await clientOf(context), "token", body);
    output.result(document, showCredential(document));
  },
});
