// magic controller promote: an alias moves to a version, wholly or for a share of its calls.
import { promoteController } from "#client/controllers.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { percentOf } from "./percent.ts";
import { showController } from "./show.ts";

export default defineCommand<{ alias: string; percent?: string }>({
  configure: (command) =>
    command
      .argument("<name>", "the controller")
      .argument("<version>", "the version")
      .option("--alias <alias>", "the alias", "latest")
      .option("--percent <n>", "only this share of the alias's calls"),
  async run(context) {
    const { args, options, output } = context;
    const percent = percentOf(options.percent);
    const client = await clientOf(context);
    const found = await promoteController(client, String(args[0]), options.alias, String(args[1]), percent);
    output.result(found, (paint) => showController(found, paint));
  },
});
