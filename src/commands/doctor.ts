// magic doctor: every check with what it found and what to do; --fix does what is safe. Exit code 3 while something fails.
import type { Check } from "#client/daemon/check.ts";
import { runChecks } from "#client/daemon/doctor.ts";
import { defineCommand } from "#commands/command.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import type { Paint } from "#output/paint.ts";
import { wrap } from "#output/wrap.ts";
import { findRoot } from "#shared/paths.ts";

interface Options {
  readonly fix?: boolean;
}

export default defineCommand<Options>({
  configure: (command) => command.option("--fix", "mend what can be mended without losing anything"),
  async run({ options, output, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd);
    const checks = await runChecks({ root: root.path, env, fix: options.fix ?? false });
    const healthy = checks.every(({ status }) => status !== "failed");
    output.result({ healthy, root: root.path, project: root.project, checks }, (paint) =>
      wrap(show(checks, paint), output.columns),
    );
    return healthy ? exitCodes.ok : exitCodes.invalid;
  },
});

function show(checks: readonly Check[], paint: Paint): string {
  const marks = { ok: paint.green("✔"), warning: paint.yellow("!"), failed: paint.red("✖"), fixed: paint.green("✚") };
  return checks
    .map(({ name, status, detail, next }) => {
      const line = `${marks[status]} ${name.padEnd(14)} ${detail}`;
      return next === undefined ? line : `${line}\n  ${paint.dim(`next: ${next}`)}`;
    })
    .join("\n");
}
