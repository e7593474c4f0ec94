// argv -> the one command that it names. Only that command's file is loaded; --help loads none.
import { Command, type CommanderError, InvalidArgumentError, Option } from "commander";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { formats } from "#output/output.ts";
import { type CommandEntry, type CommandModule, isNoun, type NounEntry } from "./command.ts";
import { formatHelp } from "./help.ts";
import { groups } from "./registry.ts";

export interface Chosen {
  readonly module: CommandModule<never>;
  readonly command: Command;
  /** As in its entry of the registry. */
  readonly local: boolean;
}

export interface Program {
  readonly root: Command;
  /** What was chosen once `parse` is through; undefined where --help was printed. */
  chosen: Chosen | undefined;
}

/** With fewer columns than these beside the names, help leaves the breaking of lines to the terminal. */
const NARROWEST = 16;
const withValue = new Set(["--output", "--url", "--root"]);

/** The command tree with everything listed and only what `argv` names loaded. */
export async function createProgram(argv: readonly string[], write: (text: string) => void): Promise<Program> {
  const root = new Command("magic");
  const program: Program = { root, chosen: undefined };
  quieten(root, write);
  root
    .description("AI gateway, locked-down controllers and integrations: one command line and one local daemon.")
    .usage("<command> [options]")
    .helpCommand(false)
    .helpOption("-h, --help", "show this help")
    .addHelpText("after", "\nStart with `magic demo`, or `magic scaffold --name hello` and `magic dev`.");
  const [first, second] = wordsOf(argv);
  if (first === undefined) root.option("-V, --version", "show the version");
  globalOptions(root);
  for (const group of groups) {
    root.commandsGroup(group.heading);
    for (const [name, entry] of Object.entries(group.commands)) {
      const { summary, local = false } = entry;
      const command = root.command(name).description(summary).helpOption("-h, --help", "show this help");
      quieten(command, write, local);
      if (name !== first) continue;
      if (!isNoun(entry)) await attach(program, command, entry, local);
      else await nounVerbs(program, command, entry, second, write);
    }
  }
  return program;
}

async function nounVerbs(
  program: Program,
  noun: Command,
  { verbs, local = false }: NounEntry,
  chosen: string | undefined,
  write: (text: string) => void,
): Promise<void> {
  noun.usage("<verb> [options]").helpCommand(false);
  for (const [verb, entry] of Object.entries((await verbs()).verbs)) {
    const command = noun.command(verb).description(entry.summary);
    quieten(command, write, local);
    if (verb === chosen) await attach(program, command, entry, local);
  }
}

async function attach(program: Program, command: Command, entry: CommandEntry, local: boolean): Promise<void> {
  const module = (await entry.load()).default;
  module.configure?.(command);
  command.action(() => {
    takeOwn(program.root, command);
    program.chosen = { module, command, local };
  });
}

// `webhook create --url U` means the webhook's URL, but commander gives what both know to the root: a command's own option wins.
function takeOwn(root: Command, command: Command): void {
  for (const name of command.options.map((option) => option.attributeName())) {
    if (root.getOptionValueSource(name) !== "cli" || command.getOptionValueSource(name) === "cli") continue;
    command.setOptionValueWithSource(name, root.getOptionValue(name), "cli");
    root.setOptionValueWithSource(name, undefined, undefined);
  }
}

function globalOptions(root: Command): void {
  root
    .optionsGroup("Options of every command:")
    .option("--json", "print one JSON document")
    .addOption(new Option("--output <format>", "the form of what is printed").choices(formats))
    .option("--live", "the live environment instead of the sandbox")
    .option("--url <url>", "another daemon (also MAGIC_URL, with MAGIC_API_KEY)", notEmpty)
    .option("--root <dir>", "the project's folder (also MAGIC_ROOT)", notEmpty)
    .option("-q, --quiet", "no notes, only data and errors");
}

// `--root "$PROJECT"` with the variable unset must not mean another project.
function notEmpty(value: string): string {
  if (value === "") throw new InvalidArgumentError("It is empty.");
  return value;
}

// commander prints and exits by itself unless it is told not to; help is data, errors are ours to render.
function quieten(command: Command, write: (text: string) => void, local = false): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: () => {}, outputError: () => {} })
    .configureHelp({ formatHelp: (one, helper) => formatHelp(one, helper, local), minWidthToWrap: NARROWEST })
    .showSuggestionAfterError(true);
}

/** The words of argv that are neither options nor the global options' values. */
export function wordsOf(argv: readonly string[]): string[] {
  const found: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? "";
    if (word === "--") break;
    if (withValue.has(word)) at++;
    else if (!word.startsWith("-")) found.push(word);
  }
  return found;
}

/** commander's refusal as a usage error that names everything missing, not only the first. Undefined: help was shown. */
export async function usageError(
  error: CommanderError,
  program: Program,
  argv: readonly string[],
): Promise<MagicError | undefined> {
  if (error.code === "commander.helpDisplayed") return undefined;
  const command = commandOf(program.root, argv);
  const path = commandPath(command);
  const extra = { next: `See \`${path} --help\`.` };
  if (error.code === "commander.help") {
    const names = command.commands.map((one) => one.name()).join(", ");
    const what = command === program.root ? "command" : "verb";
    return new MagicError("usage", `\`${path}\` needs a ${what}: ${names}.`, { extra });
  }
  if (error.code === "commander.unknownCommand" && command === program.root) {
    const word = wordsOf(argv)[0] ?? "";
    const meant = await nounsWith(word);
    const said = meant.length > 1 ? `one of ${meant.join(", ")}` : meant[0];
    if (said) return new MagicError("usage", `Unknown command '${word}'. Did you mean ${said}?`, { extra });
  }
  const missing = error.code.startsWith("commander.missing") ? missingOf(command) : [];
  if (missing.length > 0)
    return new MagicError("usage", `Missing: ${missing.join(", ")}.`, { extra: { ...extra, missing } });
  const detail = error.message.replace(/^error: /, "").replace(/\n\((.*)\)$/, ". $1");
  return new MagicError("usage", detail.charAt(0).toUpperCase() + detail.slice(1), { extra });
}

/** `status` -> `daemon status`: a verb whose noun was left out. */
async function nounsWith(verb: string): Promise<string[]> {
  const found: string[] = [];
  for (const [noun, entry] of groups.flatMap(({ commands }) => Object.entries(commands)))
    if (isNoun(entry) && Object.hasOwn((await entry.verbs()).verbs, verb)) found.push(`${noun} ${verb}`);
  return found;
}

function commandOf(root: Command, argv: readonly string[]): Command {
  let command = root;
  for (const word of wordsOf(argv)) {
    const next = command.commands.find((candidate) => candidate.name() === word);
    if (!next) break;
    command = next;
  }
  return command;
}

/** What a command says of its own line, with its own help in place of the general hint. */
export function namingCommand(error: unknown, command: Command): unknown {
  if (!isMagicError(error) || error.code !== "usage" || error.extra["next"] !== undefined) return error;
  const extra = { ...error.extra, next: `See \`${commandPath(command)} --help\`.` };
  return new MagicError("usage", error.message, { cause: error.cause, problems: error.problems, extra });
}

function commandPath(command: Command): string {
  return command.parent ? `${commandPath(command.parent)} ${command.name()}` : command.name();
}

function missingOf(command: Command): string[] {
  const args = command.registeredArguments
    .filter((argument, at) => argument.required && command.args[at] === undefined)
    .map((argument) => `<${argument.name()}>`);
  const options = command.options
    .filter((option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined)
    .map((option) => option.flags);
  return [...args, ...options];
}

/** argv without --help where its command does not exist: then the answer is the unknown name, not the help of what is above it. */
export function withoutStrayHelp(root: Command, argv: readonly string[]): string[] {
  const named = wordsOf(argv);
  const command = commandOf(root, argv);
  const depth = commandPath(command).split(" ").length - 1;
  const stray = command.commands.length > 0 && named.length > depth;
  return stray ? argv.filter((word) => word !== "--help" && word !== "-h") : [...argv];
}
