// magic completion: a script for the shell, made from the registry: commands, verbs and their options.
import { Argument, Command, Option } from "commander";
import { type CommandEntry, defineCommand, type Group, isNoun } from "#commands/command.ts";
import { type Completion, completionScript, type Shell, shells } from "#output/completion.ts";
import { type Names, nameKinds, namesFor, namesOf, valuesOf } from "./completion-values.ts";

const globalOptions = ["--json", "--output", "--live", "--url", "--root", "--quiet", "--help"];
const localOptions = globalOptions.filter((option) => option !== "--url");

export default defineCommand<{ names?: Names }>({
  configure: (command) =>
    command
      .addArgument(new Argument("<shell>", "the shell").choices(shells))
      // For the scripts themselves.
      .addOption(new Option("--names <kind>").choices(nameKinds).hideHelp())
      .addHelpText("after", '\neval "$(magic completion bash)" is for this session; in ~/.bashrc, for good.'),
  async run(context) {
    const { args, options, output, registry } = context;
    const shell = args[0] as Shell;
    if (options.names) {
      const names = await namesOf(options.names, context);
      return output.result({ names }, () => names.join("\n"));
    }
    const script = completionScript(shell, await everything(registry));
    output.result({ shell, script }, () => script);
  },
});

async function everything(groups: readonly Group[]): Promise<Completion[]> {
  const found: Completion[] = [];
  const top: { name: string; summary: string }[] = [];
  for (const group of groups) {
    for (const [name, entry] of Object.entries(group.commands)) {
      top.push({ name, summary: entry.summary });
      const shared = entry.local ? localOptions : globalOptions;
      if (!isNoun(entry)) found.push(await leaf([name], entry, shared));
      else {
        const { verbs } = await entry.verbs();
        const words = Object.entries(verbs).map(([verb, { summary }]) => ({ name: verb, summary }));
        found.push({ path: [name], words, options: shared, values: {} });
        for (const [verb, inner] of Object.entries(verbs)) found.push(await leaf([name, verb], inner, shared));
      }
    }
  }
  const values = { "--output": valuesOf("", "--output") ?? [] };
  return [{ path: [], words: top, options: [...globalOptions, "--version"], values }, ...found];
}

async function leaf(path: string[], entry: CommandEntry, shared: readonly string[]): Promise<Completion> {
  const command = new Command(path.at(-1));
  (await entry.load()).default.configure?.(command);
  const shown = command.options.filter(({ hidden }) => !hidden);
  const options = shown.flatMap(({ long }) => long ?? []);
  const values = shown.flatMap(({ long, short, argChoices }) => {
    const found = argChoices ?? (long ? valuesOf(path.join(" "), long) : undefined);
    return found ? [long, short].flatMap((flag) => (flag ? [[flag, found] as const] : [])) : [];
  });
  const [first] = command.registeredArguments;
  const words = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  return {
    path,
    words: words.map((name) => ({ name, summary: "" })),
    names: namesFor(path, first?.name()),
    options: [...options, ...shared],
    values: Object.fromEntries(values),
  };
}
