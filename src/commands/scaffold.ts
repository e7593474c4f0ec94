// magic scaffold: a new controller from a template.
import { dirname, relative, resolve } from "node:path";
import { Option } from "commander";
import { defineCommand } from "#commands/command.ts";
import { MagicError } from "#contract/errors.ts";
import { askChoice, askText } from "#output/prompt.ts";
import { shellWord } from "#output/shell-word.ts";
import { controllersFolder } from "#scaffold/project.ts";
import { type Language, type Template, templates } from "#scaffold/render.ts";
import { nameProblem, scaffold } from "#scaffold/scaffold.ts";
import { findRoot, shownPath } from "#shared/paths.ts";

interface Options {
  readonly name?: string;
  readonly template?: Template;
  readonly lang: Language;
  readonly dir?: string;
  readonly force?: boolean;
}

const names = Object.keys(templates) as Template[];

export default defineCommand<Options>({
  configure: (command) =>
    command
      .option("--name <name>", "what the controller is called")
      .addOption(new Option("--template <template>", "what to start from").choices(names))
      .addOption(new Option("--lang <language>", "the language").choices(["ts", "js"]).default("ts"))
      .option("--dir <dir>", "the folder to make it in (default: the project's controllers folder)")
      .option("--force", "replace the template's files in a folder that exists"),
  async run({ options, output, globals, env, cwd, need }) {
    const { name } = await need({
      name: {
        value: options.name,
        flag: "--name <name>",
        ask: () => askText("What is the controller called?", undefined, nameProblem),
      },
    });
    const asked = options.name === undefined && options.template === undefined;
    const template = options.template ?? (asked ? await askTemplate() : "minimal");
    const found = findRoot(globals.root, env, cwd);
    const root = found.project ? found.path : cwd;
    const { lang, force = false } = options;
    // As in every command: from where one stands, but a project elsewhere that --root names is not written around.
    const base = relative(root, cwd).startsWith("..") ? root : cwd;
    if (options.dir === "") throw new MagicError("usage", "--dir takes a folder, such as services.");
    const dir = options.dir === undefined ? undefined : resolve(base, options.dir);
    const made = scaffold({ name, template, lang, root, dir, force });
    // `magic test` and `magic dev` look into the project's controllers folder alone.
    const inProject = dirname(made.path) === resolve(root, controllersFolder(root));
    const next = inProject
      ? [`magic test ${name}`, "magic dev"]
      : ["validate", "deploy"].map((verb) => `magic ${verb} ${shellWord(shownPath(made.path, cwd))}`);
    output.result(made, (paint) =>
      [
        `${paint.green("✔")} Made ${paint.bold(shownPath(made.path, cwd))} from the template ${template}`,
        ...made.files.map((file) => `    ${file}`),
        ...(made.project_files.length > 0 ? [paint.dim(`  and in the project: ${made.project_files.join(", ")}`)] : []),
        "",
        `Next:  ${next.map((line) => paint.cyan(line)).join("   then  ")}`,
      ].join("\n"),
    );
  },
});

function askTemplate(): Promise<Template> {
  return askChoice(
    "Which template?",
    names.map((value) => ({ value, name: value, description: templates[value].summary })),
  );
}
