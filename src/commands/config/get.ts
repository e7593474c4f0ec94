// magic config get: one setting or all of them.
import { defineCommand } from "#commands/command.ts";
import { table } from "#output/table.ts";
import { findRoot } from "#shared/paths.ts";
import { allSettings, oneSetting, type Resolved } from "./settings.ts";

export default defineCommand<{ showOrigin?: boolean }>({
  configure: (command) =>
    command
      .argument("[key]", "such as output or daemon.port (default: all)")
      .option("--show-origin", "say where the value comes from"),
  async run({ args, options, output, globals, env, cwd }) {
    const found = findRoot(globals.root, env, cwd);
    const around = { root: found.project ? found.path : undefined, env, globals, argv: process.argv.slice(2) };
    const [key] = args;
    if (typeof key !== "string") {
      const all = allSettings(around);
      output.result(all, (paint) =>
        table<Resolved>(
          all,
          [
            { title: "KEY", value: (row) => row.key },
            { title: "VALUE", value: (row) => shown(row.value) },
            { title: "ORIGIN", value: (row) => origin(row) },
          ],
          paint,
        ),
      );
      return;
    }
    const one = oneSetting(key, around);
    output.result(one, (paint) =>
      options.showOrigin ? `${shown(one.value)}  ${paint.dim(origin(one))}` : shown(one.value),
    );
  },
});

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function origin({ origin, source }: Resolved): string {
  return source === null ? origin : `${origin}: ${source}`;
}
