// argv -> one dynamic import. The only place that ends the process.
import { CommanderError } from "commander";
import type { Context } from "#commands/command.ts";
import { createProgram, namingCommand, usageError, withoutStrayHelp, wordsOf } from "#commands/program.ts";
import { groups } from "#commands/registry.ts";
import { formatOf, globalsOf, needValues } from "#commands/values.ts";
import { MagicError } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { VERSION } from "#contract/protocol.ts";
import { createOutput } from "#output/create.ts";
import { reportFailure } from "#output/failure.ts";
import { printableJson } from "#output/paint.ts";
import { currentFolder } from "#shared/paths.ts";
import { readUserConfig } from "#shared/user-config.ts";

const env = process.env;
const argv = helpWord(process.argv.slice(2));
const user = readUserConfig(env);
const format = formatOf(argv, env, user);
// A reader that left (`magic logs | head`) is no error; without stderr the exit code tells.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") process.exit(reportFailure(error, format, process, env));
  interruption.readerLeft();
});
process.stderr.on("error", () => {});
// Also of what nobody waits for. Where the terminal goes while something is asked, readline throws: that is the terminal's end.
process.on("uncaughtException", (error: NodeJS.ErrnoException) => {
  if (error.syscall === "setRawMode") interruption.interrupt();
  else process.exit(reportFailure(error, format, process, env));
});

// Heard from here on: a command that is still being loaded is interrupted like one that runs.
const interruption = listenToInterruption();

/** Runs the command; resolves to its exit code. */
async function main(): Promise<number> {
  if (wordsOf(argv).length === 0 && argv.some((word) => word === "--version" || word === "-V")) {
    process.stdout.write(format === "text" ? `${VERSION}\n` : `${JSON.stringify({ version: VERSION })}\n`);
    return exitCodes.ok;
  }
  // commander hands over a help text and what follows it one by one; it is one document.
  let help = "";
  const program = await createProgram(argv, (text) => {
    help += text;
  });
  try {
    const line = argv.length === 0 ? ["--help"] : withoutStrayHelp(program.root, argv);
    await program.root.parseAsync(line, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const usage = await usageError(error, program, argv);
    if (usage) throw usage;
    process.stdout.write(format === "text" ? help : `${printableJson({ help }, 0)}\n`);
    return exitCodes.ok;
  }
  if (!program.chosen) throw new MagicError("usage", "Name a command; `magic --help` lists them.");
  const { module, command, local } = program.chosen;
  if (local && program.root.opts()["url"] !== undefined)
    throw new MagicError(
      "usage",
      "This command is about the daemon of a root on this machine: --url has no meaning here.",
      {
        extra: { next: "Leave --url out, and name the root by --root." },
      },
    );
  const globals = globalsOf(program.root.opts(), format, env, user);
  const output = createOutput({ format, quiet: globals.quiet, env, streams: process });
  const context: Context<never> = {
    args: command.processedArgs,
    options: command.opts() as never,
    globals,
    output,
    env,
    get cwd() {
      return currentFolder();
    },
    registry: groups,
    signal: interruption.signal(module.handlesInterrupt === true),
    need: (wanted) => needValues(wanted, output.interactive),
  };
  try {
    const code = await module.run(context);
    output.end();
    return code ?? exitCodes.ok;
  } catch (error) {
    throw namingCommand(error, command);
  }
}

interface Interruption {
  signal(handled: boolean): AbortSignal;
  interrupt(): void;
  /** Nobody reads any more: the same end, which is no error. */
  readerLeft(): void;
  /** The command is done, with all that it says. */
  done(): void;
  readonly unread: boolean;
}

/** Milliseconds within which one signal may reach this process twice. */
const HANDED_ON = 300;

/** The first Ctrl-C, SIGTERM or end of the terminal aborts the signal; it ends a command at once that does not end by itself, as a second one does. */
function listenToInterruption(): Interruption {
  const controller = new AbortController();
  let handled = false;
  let unread = false;
  let done = false;
  let first = 0;
  const interrupt = () => {
    // Heard only now, because the command never waited: what it did and said in full is not taken back.
    if (done && process.stdout.writableLength === 0) return;
    // `timeout`, and the launcher under an older Node, hand on what the whole process group was sent: that is no second one.
    if (controller.signal.aborted && performance.now() - first < HANDED_ON) return;
    if (!handled || controller.signal.aborted)
      process.exit(reportFailure(new MagicError("interrupted"), format, process, env));
    first = performance.now();
    controller.abort(new MagicError("interrupted"));
  };
  process.on("SIGINT", interrupt).on("SIGTERM", interrupt).on("SIGHUP", interrupt);
  return {
    interrupt,
    signal(byCommand) {
      handled = byCommand;
      return controller.signal;
    },
    readerLeft() {
      if (!handled) process.exit(exitCodes.ok);
      unread = true;
      controller.abort(new MagicError("interrupted"));
    },
    done() {
      done = true;
    },
    get unread() {
      return unread;
    },
  };
}

/** `magic help sync create` is `magic sync create --help`. */
function helpWord(line: readonly string[]): string[] {
  return wordsOf(line)[0] === "help" ? [...line.toSpliced(line.indexOf("help"), 1), "--help"] : [...line];
}

const code = await main().catch((error: unknown) =>
  interruption.unread ? exitCodes.ok : reportFailure(error, format, process, env),
);
interruption.done();
await written();
process.exit(interruption.unread ? exitCodes.ok : code);

// An exit cuts off what a slow reader of a pipe has not taken yet, and comes before a full disk is told of.
async function written(): Promise<void> {
  for (const stream of [process.stdout, process.stderr])
    if (stream.writableLength > 0) await new Promise<void>((resolve) => stream.write("", () => resolve()));
  await new Promise(setImmediate);
}
