// Starts the process of a cell: minimal environment, nothing on its standard descriptors but a capped error pipe, the channel on 3.
import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { type CellEntries, cellEntries } from "./entries.ts";
import { BOOT_VARIABLE, type Boot, type Layers } from "./lockdown/boot.ts";
import type { Processes } from "./lockdown/process.ts";
import { type Native, native } from "./native.ts";
import { type CellSocket, openSocket, readSocket } from "./socket.ts";
import { newcomer, openStanding, type Standing } from "./standing.ts";
import { startProcess } from "./starter.ts";

export interface CellExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What the process wrote to its error pipe last, at most 8 kB: V8's reason when it gave up. */
  readonly stderr: string;
}

export interface CellProcess {
  readonly pid: number;
  readonly socket: CellSocket;
  readonly standing: Standing;
  readonly exited: Promise<CellExit>;
  /** Called once when the error pipe is flooded. */
  onFlood: (() => void) | null;
  kill(): void;
}

const MAX_STDERR = 8 * 1024;
const LONGEST_LOOK_MS = 50;
const STDERR_FLOOD = 1024 * 1024;
const NODE_FLAGS = ["--no-warnings", "--disable-sigusr1", "--v8-pool-size=1"];

/** What Node itself reads while it starts. */
const SYSTEM_PATHS = ["/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/proc/self"];

export async function spawnCell(layers: Layers): Promise<CellProcess> {
  const entries = await cellEntries();
  const libc = await native();
  const boot = bootOf(entries, layers);
  const args = layers.kernel ? ["--no-warnings", entries.stageZero] : [...boot.flags, entries.zygote];
  const env = {
    UV_THREADPOOL_SIZE: "1",
    OPENSSL_CONF: "/dev/null",
    [BOOT_VARIABLE]: JSON.stringify(layers.kernel ? boot : { layers, landlock: 0, missing: [] }),
  };
  const child = libc?.processes ? await startNatively(libc, libc.processes, args, env) : startByNode(args, env);
  const standing = openStanding(child.pid, libc, child.session);
  let stderr = "";
  let bytes = 0;
  const cell: CellProcess = {
    pid: child.pid,
    socket: child.socket,
    standing,
    exited: child.exited.then((exit) => ({ ...exit, stderr })),
    onFlood: null,
    kill: child.kill,
  };
  cell.exited.catch(() => {});
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    bytes += text.length;
    stderr = (stderr + text).slice(-MAX_STDERR);
    if (bytes > STDERR_FLOOD && cell.onFlood) {
      child.stderr.destroy();
      cell.onFlood();
    }
  });
  return cell;
}

interface Child {
  readonly pid: number;
  /** Of newcomer(). */
  readonly session: number | null;
  readonly socket: CellSocket;
  readonly stderr: Readable;
  /** After its error pipe has been read to its end, so that V8's last words are in. */
  readonly exited: Promise<Omit<CellExit, "stderr">>;
  kill(): void;
}

// Both in a session of its own: Linux shares processors out between sessions first, and a cell's load must not be taken for the daemon's.

async function startNatively(
  libc: Native,
  processes: Processes,
  args: readonly string[],
  env: Record<string, string>,
): Promise<Child> {
  const { pid, channel, errors, session } = await startProcess(libc, processes, args, env);
  const stderr = new Socket({ fd: errors, readable: true, writable: false });
  stderr.on("error", () => {});
  let ended = false;
  return {
    pid,
    session,
    socket: openSocket(channel),
    stderr,
    exited: new Promise((resolve) => {
      // The pipe's end comes with the process's, or a moment before it.
      const look = (againMs: number): void => {
        const end = processes.reap(pid);
        if (end === null) {
          setTimeout(look, againMs, Math.min(againMs * 2, LONGEST_LOOK_MS));
          return;
        }
        ended = true;
        resolve({ code: end.code, signal: end.signal === null ? null : signalName(end.signal) });
      };
      stderr.once("close", () => look(1));
    }),
    // Until it was reaped its number is nobody else's.
    kill: () => void (ended || process.kill(pid, "SIGKILL")),
  };
}

function startByNode(args: readonly string[], env: Record<string, string>): Child {
  const child = spawn(process.execPath, args, {
    ...{ stdio: ["ignore", "ignore", "pipe", "pipe"], env, cwd: "/", detached: true },
  });
  // Without a descriptor left it has no pipes, and what is thrown below comes before anybody listens.
  child.on("error", () => {});
  return {
    pid: child.pid ?? 0,
    session: newcomer(child.pid ?? 0, null),
    socket: readSocket(child.stdio[3] as Socket),
    stderr: child.stderr as Readable,
    exited: new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve({ code, signal }));
    }),
    kill: () => void child.kill("SIGKILL"),
  };
}

function signalName(number: number): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, one]) => one === number);
  return (found?.[0] as NodeJS.Signals | undefined) ?? null;
}

function bootOf(entries: CellEntries, layers: Layers): Boot {
  const permission = [
    "--permission",
    "--allow-ffi",
    `--allow-fs-read=${entries.folder}/`,
    "--allow-fs-read=/proc/self/status",
  ];
  return {
    node: process.execPath,
    flags: layers.permission ? [...NODE_FLAGS, ...permission] : NODE_FLAGS,
    zygote: entries.zygote,
    readable: [process.execPath, entries.folder, ...SYSTEM_PATHS],
    parent: process.pid,
    layers,
  };
}
