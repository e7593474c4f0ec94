// magic config set: into the user's configuration (output, environment, url) or the project's magic.yaml (everything else).
import { defineCommand } from "#commands/command.ts";
import { findRoot } from "#shared/paths.ts";
import { changeSetting } from "./change.ts";

export default defineCommand({
  configure: (command) =>
    command.argument("<key>", "such as output or daemon.port").argument("<value>", "text, number, or YAML for more"),
  async run({ args, output, globals, env, cwd }) {
    const found = findRoot(globals.root, env, cwd);
    const change = await changeSetting(String(args[0]), String(args[1]), found.project ? found.path : undefined, env);
    if (change.key.startsWith("daemon.")) output.note("A daemon that runs takes it with `magic daemon restart`.");
    output.result(change, (paint) => `${paint.green("✔")} ${change.key} is set in ${change.file}`);
  },
});
