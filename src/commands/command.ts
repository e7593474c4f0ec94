// What a command is. A file `src/commands/<name>.ts` or `src/commands/<noun>/<verb>.ts` default-exports defineCommand({...});
// it parses, calls a service, and hands the result to `output`. Nothing here prints or exits.
import type { Command } from "commander";
import type { ExitCode } from "#contract/exit-codes.ts";
import type { Format, Output } from "#output/output.ts";

/** The options that every command takes, wherever they stand on the line. */
export interface GlobalOptions {
  readonly format: Format;
  /** True: the live environment; false: the sandbox. */
  readonly live: boolean;
  /** --url or MAGIC_URL: another daemon than this root's own. */
  readonly url: string | undefined;
  /** --root; MAGIC_ROOT and the search upwards are #shared/paths' findRoot. */
  readonly root: string | undefined;
  readonly quiet: boolean;
}

/** A value that a command needs: given as `value`, asked for on a terminal by `ask`, else listed as missing under `flag`. */
export interface Wanted<T> {
  readonly value: T | undefined;
  /** As it is typed, e.g. `--name <name>`. */
  readonly flag: string;
  readonly ask?: () => Promise<T>;
}

export interface Context<Options> {
  /** Positional arguments, in order; a variadic one is an array. */
  readonly args: readonly (string | string[] | undefined)[];
  readonly options: Options;
  readonly globals: GlobalOptions;
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Everything that magic can do, for commands about commands. */
  readonly registry: readonly Group[];
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
  /** Values that may be missing: asks for them on a terminal, else one usage error lists all of them. */
  need<T extends Record<string, Wanted<unknown>>>(wanted: T): Promise<{ [K in keyof T]: NonNullable<T[K]["value"]> }>;
}

export interface CommandModule<Options = Record<string, unknown>> {
  /** Declares arguments, options and examples with commander. */
  readonly configure?: (command: Command) => unknown;
  /** True: Ctrl-C only aborts `signal`, and the command ends by itself (a second Ctrl-C ends it at once). */
  readonly handlesInterrupt?: boolean;
  /** Does the work. Returns another exit code than 0 where the outcome is not an error of the command (e.g. invalid files). */
  readonly run: (context: Context<Options>) => Promise<ExitCode | undefined> | Promise<void>;
}

/** One line of --help. */
interface Entry {
  readonly summary: string;
  /** True: it is about the daemon of a root on this machine, and `--url` would be taken for the one that it is about. */
  readonly local?: boolean;
}

/** A command and where its code is. */
export interface CommandEntry extends Entry {
  readonly load: () => Promise<{ readonly default: CommandModule<never> }>;
}

/** A noun's verbs; `src/commands/<noun>/verbs.ts` exports it as `verbs`. */
export type Verbs = Readonly<Record<string, CommandEntry>>;

export interface NounEntry extends Entry {
  readonly verbs: () => Promise<{ readonly verbs: Verbs }>;
}

/** A heading of --help with its commands. */
export interface Group {
  readonly heading: string;
  readonly commands: Readonly<Record<string, CommandEntry | NounEntry>>;
}

export function isNoun(entry: CommandEntry | NounEntry): entry is NounEntry {
  return "verbs" in entry;
}

/** Gives a command its types: `export default defineCommand<{ force?: boolean }>({ configure, run })`. */
export function defineCommand<Options = Record<string, never>>(
  command: CommandModule<Options>,
): CommandModule<Options> {
  return command;
}
