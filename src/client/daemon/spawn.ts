// Starts a daemon as a process of its own and waits until it says that it is ready, or why it will not be.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ErrorCode, errors, MagicError } from "#contract/errors.ts";
import { type ReadyMessage, type RuntimeFile, runtimeNames } from "#contract/protocol.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { stateFolder, userStateFolder } from "#shared/paths.ts";
import { lastWords } from "./files.ts";

export interface SpawnOptions {
  readonly root: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** A daemon that a command started by itself may end when it is idle; one that the user started stays. */
  readonly startedBy: "user" | "command";
  /** Stays a child of this process, writes its log to stderr, and ends with it. */
  readonly foreground?: boolean;
  /** More flags for the daemon's own command line. */
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export interface Started {
  readonly runtime: RuntimeFile;
  /** What the user should know, e.g. that another port was taken. */
  readonly notes: readonly string[];
  readonly child: ChildProcess;
}

const { O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants;

/** Milliseconds that a daemon may take until it is ready. */
const START_TIMEOUT = 30_000;

/** What Node is told before the program. */
export const nodeFlags: readonly string[] = [
  // Without it a SIGUSR1 would open a debugger, and with it everything that the daemon holds, on a port.
  "--disable-sigusr1",
  // Calls under way survive fewer collections of young memory: an eighth less CPU a call under load, for some 40 MB at its height.
  "--max-semi-space-size=64",
  // A daemon holds some 30 MB for long. By V8's own measure it would go through all of it every few seconds of its first load, until it has
  // found that out: a twentieth of a call's CPU.
  "--initial-old-space-size=192",
];

/** @throws the daemon's own reason (`port_taken`, `daemon_owned`, `state_unusable`...), or `daemon_unavailable` when it died silently. */
export async function spawnDaemon(options: SpawnOptions): Promise<Started> {
  requireRoot(options.root, options.env);
  const output = options.foreground ? ("inherit" as const) : openOutput(options.root);
  const entry = fileURLToPath(import.meta.resolve("#entry/daemon"));
  const child = spawn(process.execPath, [...nodeFlags, entry, ...flagsOf(options)], {
    cwd: options.root,
    detached: !options.foreground,
    stdio: ["ignore", options.foreground ? 2 : output, output, "ipc"],
    // Its current folder is another one: a relative state folder would be another one too.
    env: {
      // Half of them look names up at the most: see daemon/egress/lookups.ts.
      UV_THREADPOOL_SIZE: "32",
      ...compileCache(options.env),
      ...(options.env ?? process.env),
      MAGIC_HOME: userStateFolder(options.env),
    },
  });
  if (typeof output === "number") closeSync(output);
  const message = await firstMessage(child, options.root);
  if (message.type === "failed") throw asError(message);
  if (!options.foreground) {
    child.disconnect();
    child.unref();
  }
  return { runtime: message.runtime, notes: message.notes, child };
}

// Outside a project the root is the user's state folder, which is made when it is first needed; a project's folder is not.
export function requireRoot(root: string, env: NodeJS.ProcessEnv = process.env): void {
  const found = statSync(root, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found)
    throw new MagicError("not_found", `The root ${root} is not a folder.`, { extra: { next: "Name a folder." } });
  if (root !== userStateFolder(env))
    throw new MagicError("not_found", `The root ${root} does not exist.`, {
      extra: { next: "Name a folder that exists." },
    });
  try {
    makeFolder(root, 0o700);
  } catch (error) {
    throw new MagicError("state_unusable", `The state folder ${root} cannot be made: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

function flagsOf(options: SpawnOptions): string[] {
  return [
    `--root=${options.root}`,
    `--started-by=${options.startedBy}`,
    ...(options.host === undefined ? [] : [`--host=${options.host}`]),
    ...(options.port === undefined ? [] : [`--port=${options.port}`]),
    ...(options.foreground ? ["--foreground"] : []),
    ...(options.flags ?? []),
  ];
}

// What the daemon's runtime itself prints when it dies (out of memory, a failed assertion) has no other place. Where the folder
// cannot be used the daemon says so over IPC.
function openOutput(root: string): number | "ignore" {
  const path = join(stateFolder(root), runtimeNames.output);
  try {
    makeFolder(dirname(path), 0o700);
    // A pipe that nobody reads is refused, and not waited for.
    return openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0o600);
  } catch {
    return "ignore";
  }
}

// Node makes the folder itself, and never returns where it cannot be (in /proc). One that the environment names is used as Node uses it.
function compileCache(env: NodeJS.ProcessEnv = process.env): { NODE_COMPILE_CACHE?: string } {
  if (env["NODE_COMPILE_CACHE"]) return {};
  const folder = join(userStateFolder(env), "compile-cache");
  try {
    makeFolder(folder, 0o700);
    return { NODE_COMPILE_CACHE: folder };
  } catch {
    return {};
  }
}

function firstMessage(child: ChildProcess, root: string): Promise<ReadyMessage> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new MagicError("daemon_unavailable", `The daemon was not ready after ${START_TIMEOUT / 1000} s.`));
    }, START_TIMEOUT);
    const settle = (end: () => void) => {
      clearTimeout(timer);
      child.removeAllListeners();
      end();
    };
    child.once("message", (message) => settle(() => resolve(message as ReadyMessage)));
    child.once("error", (error) =>
      settle(() => reject(new MagicError("daemon_unavailable", `The daemon did not start: ${error.message}.`))),
    );
    child.once("exit", (code, signal) =>
      settle(() =>
        reject(
          new MagicError(
            "daemon_unavailable",
            `The daemon ended before it was ready (${signal ?? `code ${code}`}).${said(root)}`,
            signal === "SIGABRT" || signal === "SIGKILL" ? { extra: { next: shortOfMemory } } : {},
          ),
        ),
      ),
    );
  });
}

// Neither V8 nor the kernel has words for it.
const shortOfMemory =
  "It may have had too little memory: look at `ulimit -v` and the container's limit; it takes 4 GB of addresses.";

function said(root: string): string {
  const text = lastWords(root);
  return text === "" ? "" : ` It said: ${text}`;
}

function asError(message: ReadyMessage & { type: "failed" }): MagicError {
  const code = Object.hasOwn(errors, message.code) ? (message.code as ErrorCode) : "internal";
  return new MagicError(code, message.detail, { extra: message.extra });
}
