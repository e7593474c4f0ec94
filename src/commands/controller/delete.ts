// magic controller delete: asks first on a terminal.
import { deleteController } from "#client/controllers.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { MagicError } from "#contract/errors.ts";
import { askConfirm } from "#output/prompt.ts";

export default defineCommand<{ version?: string; yes?: boolean }>({
  configure: (command) =>
    command
      .argument("<name>", "the controller")
      .option("--version <version>", "only this version (no alias may point at it)")
      .option("--yes", "do not ask"),
  async run(context) {
    const { args, options, output } = context;
    const name = String(args[0]);
    const what = options.version === undefined ? `${name} with all its versions` : `${name} ${options.version}`;
    if (output.interactive && !options.yes && !(await askConfirm(`Delete ${what}?`)))
      throw new MagicError("interrupted", "Nothing was deleted.");
    await deleteController(await clientOf(context), name, options.version);
    output.result(
      { name, version: options.version ?? null, deleted: true },
      (paint) => `${paint.green("✔")} Deleted ${what}`,
    );
  },
});
