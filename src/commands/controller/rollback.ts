// magic controller rollback
import { rollbackController } from "#client/controllers.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { showController } from "./show.ts";

export default defineCommand<{ alias?: string }>({
  configure: (command) =>
    command.argument("<name>", "the controller").option("--alias <alias>", "the alias (default latest)"),
  async run(context) {
    const { args, options, output } = context;
    const found = await rollbackController(await clientOf(context), String(args[0]), options.alias);
    output.result(found, (paint) => showController(found, paint));
  },
});
