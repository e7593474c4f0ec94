// magic daemon start: the same document whether it was started now or runs already.
import { type StartOptions, type StartResult, startDaemon, tellCrash } from "#client/daemon/connect.ts";
import { daemonDocument, readCrashNote } from "#client/daemon/files.ts";
import { inspectDaemon, keepDaemon } from "#client/daemon/inspect.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { portOf } from "#commands/option-values.ts";
import { MagicError } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { type RuntimeFile, VERSION } from "#contract/protocol.ts";
import { onAbort } from "#shared/abort.ts";
import { findRoot } from "#shared/paths.ts";
import { addListenOptions, flagsOf, type ListenOptions, showDaemon } from "./listen-options.ts";

interface Options extends ListenOptions {
  readonly foreground?: boolean;
}

export default defineCommand<Options>({
  configure: (command) =>
    addListenOptions(command).option("--foreground", "stay in the terminal, log to stderr, end with Ctrl-C"),
  handlesInterrupt: true,
  async run(context) {
    const { output, options, globals, env, cwd } = context;
    const root = findRoot(globals.root, env, cwd).path;
    const crash = readCrashNote(root);
    if (crash) tellCrash(root, crash, output.warn);
    const started = await startAnswering({
      root,
      host: options.host,
      port: portOf(options.port),
      foreground: options.foreground ?? false,
      flags: flagsOf(options, cwd),
      env,
    });
    for (const note of started.notes) output.note(note);
    if (options.foreground && !started.started)
      throw new MagicError("daemon_owned", `A daemon runs for ${root} already (pid ${started.runtime.pid}).`);
    if (options.forgetSealed && !started.started)
      throw new MagicError(
        "daemon_owned",
        `A daemon runs for ${root} already: give --forget-sealed to \`magic daemon restart\`.`,
      );
    // An older daemon knows no such route, and one that is just ending is another command's affair.
    if (!started.started) await keepDaemon(started.runtime).catch(() => undefined);
    const unheard = started.started ? [] : unheardBy(started.runtime, options, cwd);
    if (unheard.length > 0)
      output.warn(
        `It runs already at ${started.runtime.url}: ${unheard.join(" and ")} would take \`magic daemon restart\`.`,
      );
    output.result(
      daemonDocument(started.runtime),
      showDaemon(started.runtime, started.started ? "Started" : "Runs already"),
    );
    return options.foreground ? stay(context, started) : exitCodes.ok;
  },
});

// A script goes on with what is printed: that a process lives is not enough. One that was found may have been about to end.
async function startAnswering(options: StartOptions): Promise<StartResult> {
  for (;;) {
    const result = await startDaemon(options);
    if (result.started) return result;
    const { state, detail } = await inspectDaemon(options.root);
    if (state === "wedged" || state === "foreign")
      throw new MagicError("daemon_unavailable", detail, {
        extra: {
          reason: state,
          next: "`magic daemon restart` ends it and starts another one; `magic doctor` says more.",
        },
      });
    if (state !== "stale" && state !== "absent") return result;
  }
}

// What was asked for and the daemon that runs does not do.
function unheardBy({ host, port, url, version, flags = [] }: RuntimeFile, options: Options, cwd: string): string[] {
  const wanted = portOf(options.port) || port;
  const files = flagsOf(options, cwd).filter((flag) => /^--tls-/.test(flag) && !flags.includes(flag));
  return [
    ...(version === VERSION ? [] : [`version ${VERSION}`]),
    ...(options.host === undefined || options.host === host ? [] : [`--host ${options.host}`]),
    ...(wanted === port ? [] : [`--port ${wanted}`]),
    ...(options.tls && !url.startsWith("https:") ? ["--tls"] : []),
    ...files.map((flag) => flag.replace("=", " ")),
    ...(options.allowWeakSandbox && !flags.includes("--allow-weak-sandbox") ? ["--allow-weak-sandbox"] : []),
  ];
}

// Until the daemon ends: by itself, or because this command was told to. A terminal and a service manager signal both: the daemon
// would take another signal from here for a second one, which means at once; the end of the channel is none.
function stay({ signal }: Context<Options>, { started }: StartResult): Promise<0 | 1> {
  return new Promise((resolve) => {
    const child = started?.child;
    child?.once("exit", (code) => resolve(code === 0 || signal.aborted ? exitCodes.ok : exitCodes.internal));
    onAbort(signal, () => child?.connected && child.disconnect());
  });
}
