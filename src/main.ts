// argv -> one dynamic import. The only place that ends the process.
import { CommanderError } from "commander";
import { createProgram, usageError, withoutStrayHelp } from "#commands/program.ts";
import { groups } from "#commands/registry.ts";
import { formatOf, globalsOf, needValues } from "#commands/values.ts";
import { MagicError } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { VERSION } from "#contract/protocol.ts";
import { createOutput } from "#output/create.ts";
import { reportFailure } from "#output/failure.ts";
import { printableJson } from "#output/paint.ts";
import { readUserConfig } from "#shared/user-config.ts";

const env = process.env;
const argv = helpWord(process.argv.slice(2));
const user = readUserConfig(env);
const format = formatOf(argv, env, user);
// A reader that left (`magic logs | head`) is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) =>
  process.exit(error.code === "EPIPE" ? 0 : exitCodes.internal),
);

/** Runs the command; resolves to its exit code. */
async function main(): Promise<number> {
  if (argv[0] === "--version" || argv[0] === "-V") {
    process.stdout.write(format === "text" ? `${VERSION}\n` : `${JSON.stringify({ version: VERSION })}\n`);
    return exitCodes.ok;
  }
  const program = await createProgram(argv, (text) => {
    process.stdout.write(format === "text" ? text : `${printableJson({ help: text }, 0)}\n`);
  });
  try {
    const line = argv.length === 0 ? ["--help"] : withoutStrayHelp(program.root, argv);
    await program.root.parseAsync(line, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const usage = usageError(error, program, argv);
    if (usage) throw usage;
    return exitCodes.ok;
  }
  if (!program.chosen) throw new MagicError("usage", "Name a command; `magic --help` lists them.");
  const { module, command } = program.chosen;
  const globals = globalsOf(program.root.opts(), format, env, user);
  const output = createOutput({ format, quiet: globals.quiet, env, streams: process });
  const code = await module.run({
    args: command.processedArgs,
    options: command.opts() as never,
    globals,
    output,
    env,
    cwd: process.cwd(),
    registry: groups,
    signal: interruption(module.handlesInterrupt === true),
    need: (wanted) => needValues(wanted, output.interactive),
  });
  output.end();
  return code ?? exitCodes.ok;
}

/** The first Ctrl-C or SIGTERM aborts the signal; it ends a command at once that does not end by itself, as a second one does. */
function interruption(handled: boolean): AbortSignal {
  const controller = new AbortController();
  const interrupt = () => {
    if (!handled || controller.signal.aborted)
      process.exit(reportFailure(new MagicError("interrupted"), format, process, env));
    controller.abort(new MagicError("interrupted"));
  };
  process.on("SIGINT", interrupt).on("SIGTERM", interrupt);
  return controller.signal;
}

/** `magic help sync create` is `magic sync create --help`. */
function helpWord(words: readonly string[]): string[] {
  return words[0] === "help" ? [...words.slice(1), "--help"] : [...words];
}

const code = await main().catch((error: unknown) => reportFailure(error, format, process, env));
process.exit(code);
