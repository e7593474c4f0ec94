// `magic dev --output ndjson` as a process whose events a test awaits.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { program, type Sandbox } from "./magic.ts";

export interface DevEvent extends Record<string, unknown> {
  readonly type: string;
}

export interface DevProcess {
  readonly child: ChildProcess;
  readonly events: readonly DevEvent[];
  /** The next event, after those already awaited, for which `wanted` holds. */
  next(type: string, wanted?: (event: DevEvent) => boolean, patienceMs?: number): Promise<DevEvent>;
  /** Sends the signal and resolves to the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
  stderr(): string;
}

export function startDev(box: Sandbox, args: readonly string[] = []): DevProcess {
  const child = spawn(process.execPath, [program, "dev", "--output", "ndjson", ...args], {
    cwd: box.folder,
    env: box.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const events: DevEvent[] = [];
  const listeners = new Set<() => void>();
  let errors = "";
  let seen = 0;
  child.stderr.on("data", (data: Buffer) => {
    errors += data.toString("utf8");
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    events.push(JSON.parse(line) as DevEvent);
    for (const listener of listeners) listener();
  });
  const exit = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  return {
    child,
    events,
    stderr: () => errors,
    next: (type, wanted = () => true, patienceMs = 60_000) =>
      new Promise((resolve, reject) => {
        const finish = (result: () => void) => {
          clearTimeout(timer);
          listeners.delete(look);
          result();
        };
        const timer = setTimeout(
          () => finish(() => reject(new Error(`no ${type}: ${JSON.stringify(events.slice(-5))} ${errors}`))),
          patienceMs,
        );
        const look = () => {
          const at = events.findIndex((event, index) => index >= seen && event.type === type && wanted(event));
          if (at < 0) return;
          seen = at + 1;
          finish(() => resolve(events[at] as DevEvent));
        };
        listeners.add(look);
        look();
      }),
    end: (signal) => {
      child.kill(signal);
      return exit;
    },
  };
}
