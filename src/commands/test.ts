// magic test: the tests of controllers, on this machine, with nothing to install. Exit 3 when one fails.
import { resolve } from "node:path";
import { defineCommand } from "#commands/command.ts";
import { MagicError } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { oneLine, type Paint } from "#output/paint.ts";
import { whereWritable, writeEditorFiles } from "#scaffold/editor.ts";
import { controllersFolder, noProject, refuseBackslash } from "#scaffold/project.ts";
import { chooseControllers, runTests, type TestResult, testFilesIn } from "#scaffold/tests.ts";
import { findRoot } from "#shared/paths.ts";

export default defineCommand({
  configure: (command) => command.argument("[name...]", "controllers to test (default: all)"),
  // Or the tests' processes would go on without it.
  handlesInterrupt: true,
  async run({ args, output, globals, env, cwd, signal }) {
    const root = findRoot(globals.root, env, cwd);
    if (!root.project) throw noProject();
    refuseBackslash(root.path);
    const folders = chooseControllers(resolve(root.path, controllersFolder(root.path)), (args[0] ?? []) as string[]);
    if (!folders.some((folder) => testFilesIn(folder).length > 0))
      throw new MagicError("not_found", "There are no tests: no file is called *.test.ts or *.test.js.", {
        extra: { next: "Write one beside the handler; `magic scaffold` makes an example." },
      });
    whereWritable(() => writeEditorFiles(root.path));
    const results: TestResult[] = [];
    const started = performance.now();
    for await (const event of runTests(folders, root.path, cwd, signal)) {
      if (signal.aborted) break;
      if (event.type === "output") output.note(event.text.trimEnd());
      else {
        results.push(event.result);
        if (output.format !== "json") output.event(event.result, (paint) => resultText(event.result, paint));
      }
    }
    signal.throwIfAborted();
    const failed = results.filter(({ ok }) => !ok).length;
    const skipped = results.filter((result) => result.skipped).length;
    const passed = results.length - failed - skipped;
    const duration_ms = Math.round(performance.now() - started);
    if (output.format !== "ndjson")
      output.result({ passed, failed, skipped, duration_ms, tests: results }, (paint) => {
        const sum = `${passed} passed${failed > 0 ? `, ${failed} failed` : ""}${skipped > 0 ? `, ${skipped} skipped` : ""}`;
        return `\n${failed > 0 ? paint.red(`✖ ${sum}`) : paint.green(`✔ ${sum}`)} ${paint.dim(`in ${duration_ms} ms`)}`;
      });
    return failed > 0 ? exitCodes.invalid : exitCodes.ok;
  },
});

function resultText(result: TestResult, paint: Paint): string {
  const { ok, skipped, controller, name, duration_ms, error, file, line } = result;
  const mark = skipped ? paint.yellow("-") : ok ? paint.green("✔") : paint.red("✖");
  const head = `${mark} ${paint.dim(`${controller}:`)} ${oneLine(name)} ${paint.dim(`${duration_ms} ms`)}`;
  if (error === undefined) return head;
  const place = line === undefined ? file : `${file}:${line}`;
  return [head, `    ${paint.cyan(place)}`, ...error.split("\n").map((text) => `    ${text}`)].join("\n");
}
