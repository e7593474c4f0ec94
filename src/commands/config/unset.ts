// magic config unset: removes a setting where `config set` would put it.
import { defineCommand } from "#commands/command.ts";
import { findRoot } from "#shared/paths.ts";
import { changeSetting } from "./change.ts";

export default defineCommand({
  configure: (command) => command.argument("<key>", "such as output or daemon.port"),
  async run({ args, output, globals, env, cwd }) {
    const found = findRoot(globals.root, env, cwd);
    const change = await changeSetting(String(args[0]), undefined, found.project ? found.path : undefined, env);
    output.result(change, (paint) => `${paint.green("✔")} ${change.key} is no longer set in ${change.file}`);
  },
});
