// magic completion: a script for the shell, made from the registry: commands, verbs and their options.
import { Argument, Command } from "commander";
import { type CommandEntry, defineCommand, type Group, isNoun } from "#commands/command.ts";
import { type Completion, completionScript, type Shell, shells } from "#output/completion.ts";

const globalOptions = ["--json", "--output", "--live", "--url", "--root", "--quiet", "--help"];

export default defineCommand({
  configure: (command) =>
    command
      .addArgument(new Argument("<shell>", shells.join(", ")).choices(shells))
      .addHelpText(
        "after",
        '\nFor this session: eval "$(magic completion bash)"; for good: put that line into ~/.bashrc.',
      ),
  async run({ args, output, registry }) {
    const shell = args[0] as Shell;
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
      if (!isNoun(entry)) found.push(await leaf([name], entry));
      else {
        const { verbs } = await entry.verbs();
        const words = Object.entries(verbs).map(([verb, { summary }]) => ({ name: verb, summary }));
        found.push({ path: [name], words, options: globalOptions });
        for (const [verb, inner] of Object.entries(verbs)) found.push(await leaf([name, verb], inner));
      }
    }
  }
  return [{ path: [], words: top, options: [...globalOptions, "--version"] }, ...found];
}

async function leaf(path: string[], entry: CommandEntry): Promise<Completion> {
  const command = new Command(path.at(-1));
  (await entry.load()).default.configure?.(command);
  const options = command.options.flatMap(({ long }) => (long ? [long] : []));
  const words = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  return { path, words: words.map((name) => ({ name, summary: "" })), options: [...options, ...globalOptions] };
}
