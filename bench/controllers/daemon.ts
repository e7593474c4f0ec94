// A daemon of its own in a temporary project, for the benchmarks beside this file. Needs a built dist/.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const launcher = fileURLToPath(new URL("../../bin/magic.js", import.meta.url));

export interface BenchDaemon {
  readonly root: string;
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  write(path: string, text: string): void;
  request(path: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

/** In the background, as users run it: one in the foreground writes its log to a terminal too. `pin`: the processor that it may use (taskset). For a profile of the daemon: NODE_OPTIONS=--cpu-prof. */
export async function startDaemon(options: { pin?: string } = {}): Promise<BenchDaemon> {
  const root = mkdtempSync(join(tmpdir(), "magic-bench-"));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write("magic.yaml", "version: 1\ncontrollers: controllers\n");
  const command = [process.execPath, launcher];
  const pinned = options.pin === undefined ? command : ["taskset", "-c", options.pin, ...command];
  const [program, ...args] = [...pinned, "daemon", "start", "--json", "--port", "0", "--root", root];
  const child: ChildProcess = spawn(program as string, args, {
    env: { ...process.env, MAGIC_HOME: join(root, "home"), CI: "1" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ready = await firstDocument(child.stdout as NodeJS.ReadableStream);
  const token = ready.local_token;
  return {
    root,
    url: ready.url,
    token,
    pid: ready.pid,
    write,
    request: (path, init = {}) =>
      fetch(ready.url + path, {
        ...init,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers },
      }),
    async stop() {
      process.kill(ready.pid, "SIGTERM");
      while (existsSync(`/proc/${ready.pid}`)) await new Promise((done) => setTimeout(done, 50));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

interface Ready {
  readonly url: string;
  readonly local_token: string;
  readonly pid: number;
}

/** The JSON document that `daemon start --json` prints over several lines. */
function firstDocument(stream: NodeJS.ReadableStream): Promise<Ready> {
  let text = "";
  return new Promise((resolve) => {
    stream.on("data", (chunk) => {
      text += String(chunk);
      if (/\n}\s*$/.test(text)) resolve(JSON.parse(text.slice(text.indexOf("{"))) as Ready);
    });
  });
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round((sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN) * 10) / 10;
}
