// magic validate: every problem of contracts and magic.yaml at once. Exit 3 when there is one.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { defineCommand } from "#commands/command.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { problemsText } from "#output/problems.ts";
import { folderFor } from "#scaffold/locate.ts";
import { validatePaths } from "#scaffold/validation.ts";
import { findRoot } from "#shared/paths.ts";

export default defineCommand({
  configure: (command) =>
    command.argument(
      "[path...]",
      "controllers' folders or names, contract files or magic.yaml (default: the whole project)",
    ),
  async run({ args, output, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd);
    const isName = (given: string) => /^[a-z][\w-]*$/.test(given) && !existsSync(resolve(cwd, given));
    const paths = ((args[0] ?? []) as string[]).map((given) =>
      root.project && isName(given) ? folderFor(given, root.path, cwd) : given,
    );
    const found = validatePaths(paths, root.project ? root.path : undefined, cwd);
    const { valid, problems, warnings, checked } = found;
    output.result({ valid, problems, warnings, checked }, (paint) => {
      const contracts = checked.filter(({ kind }) => kind === "contract").length;
      const what = [
        contracts === 1 ? "1 contract" : `${contracts} contracts`,
        ...(checked.length > contracts ? ["magic.yaml"] : []),
      ].join(" and ");
      if (valid) return `${paint.green("✔")} ${what}: no problems`;
      const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
      return `${problemsText(problems, paint, cwd)}\n\n${paint.red("✖")} ${count} in ${what}`;
    });
    if (output.format === "text")
      for (const { file, line, column, message, fix } of warnings)
        output.warn(`${file}:${line}:${column} ${message} ${fix}`);
    return valid ? exitCodes.ok : exitCodes.invalid;
  },
});
