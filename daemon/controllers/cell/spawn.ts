// Starts the process of a cell: minimal environment, nothing on its standard descriptors but a capped error pipe, the channel on 3.
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { type CellEntries, cellEntries } from "./entries.ts";
import { BOOT_VARIABLE, type Boot, type Layers } from "./lockdown/boot.ts";

export interface CellExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What the process wrote to its error pipe last, at most 8 kB: V8's reason when it gave up. */
  readonly stderr: string;
}

export interface CellProcess {
  readonly pid: number;
  readonly socket: Socket;
  readonly exited: Promise<CellExit>;
  /** Called once when the error pipe is flooded. */
  onFlood: (() => void) | null;
  kill(): void;
}

const MAX_STDERR = 8 * 1024;
const STDERR_FLOOD = 1024 * 1024;
const NODE_FLAGS = ["--no-warnings", "--disable-sigusr1", "--v8-pool-size=1"];

/** What Node itself reads while it starts. */
const SYSTEM_PATHS = ["/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/proc/self"];

export async function spawnCell(layers: Layers): Promise<CellProcess> {
  const entries = await cellEntries();
  const boot = bootOf(entries, layers);
  const program = layers.kernel ? [entries.stageZero] : [...boot.flags, entries.zygote];
  const child = spawn(process.execPath, layers.kernel ? ["--no-warnings", ...program] : program, {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    env: {
      UV_THREADPOOL_SIZE: "1",
      OPENSSL_CONF: "/dev/null",
      [BOOT_VARIABLE]: JSON.stringify(layers.kernel ? boot : { layers, landlock: 0, missing: [] }),
    },
    cwd: "/",
  });
  const socket = child.stdio[3] as Socket;
  socket.on("error", () => {});
  let stderr = "";
  let bytes = 0;
  const cell: CellProcess = {
    pid: child.pid ?? 0,
    socket,
    exited: new Promise((resolve, reject) => {
      child.once("error", reject);
      // "close": the error pipe has been read to its end, so that V8's last words are in.
      child.once("close", (code, signal) => resolve({ code, signal, stderr }));
    }),
    onFlood: null,
    kill: () => void child.kill("SIGKILL"),
  };
  cell.exited.catch(() => {});
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    bytes += text.length;
    stderr = (stderr + text).slice(-MAX_STDERR);
    if (bytes > STDERR_FLOOD && cell.onFlood) {
      child.stderr?.destroy();
      cell.onFlood();
    }
  });
  return cell;
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
