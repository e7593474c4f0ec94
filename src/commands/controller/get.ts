// magic controller get
import { getController } from "#client/controllers.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { showController } from "./show.ts";

export default defineCommand({
  configure: (command) => command.argument("<name>", "the controller"),
  async run(context) {
    const found = await getController(await clientOf(context), String(context.args[0]));
    context.output.result(found, (paint) => showController(found, paint));
  },
});
