// Runs magic itself for the demo: whole commands, and one that stays (`magic dev`) whose events are awaited.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { tryParse } from "#client/refusal.ts";
import { knownCode, MagicError } from "#contract/errors.ts";

export interface Magic {
  /** Runs `magic ...args --json` in the project and answers its document. Throws with the command's own error. */
  json<T>(...args: string[]): Promise<T>;
  /** Starts `magic dev --output ndjson`. */
  dev(): Dev;
}

export interface Dev {
  /** The next event of this type for which `wanted` holds. */
  event<T extends Record<string, unknown>>(type: string, wanted?: (event: T) => boolean): Promise<T>;
  /** Ends it as Ctrl-C does; resolves to its exit code. */
  stop(): Promise<number | null>;
}

const PATIENCE_MS = 30_000;

export function magicIn(folder: string, env: NodeJS.ProcessEnv, signal: AbortSignal): Magic {
  const program = process.argv[1] ?? "";
  const options = { cwd: folder, env, signal, maxBuffer: 16 * 1024 * 1024, timeout: PATIENCE_MS };
  return {
    json: <T>(...args: string[]) =>
      new Promise<T>((resolve, reject) => {
        const child = execFile(process.execPath, [program, ...args, "--json"], options, (error, stdout, stderr) => {
          const settle = () => {
            if (stdout.trim() !== "" && !error) resolve(JSON.parse(stdout) as T);
            else reject(signal.aborted ? new MagicError("interrupted") : failure(args, stderr, error));
          };
          // Aborted, this is called while the process still writes: into a project that is being removed.
          if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
            child.once("exit", settle);
          else settle();
        });
      }),
    dev: () =>
      startDev(
        spawn(process.execPath, [program, "dev", "--output", "ndjson"], {
          cwd: folder,
          env,
          stdio: ["ignore", "pipe", "pipe"],
        }),
        signal,
      ),
  };
}

function failure(args: readonly string[], stderr: string, error: unknown): MagicError {
  const last = stderr.trim().split("\n").at(-1) ?? "";
  const told = tryParse(last) as { code?: string; detail?: string; next?: string } | undefined;
  if (told?.code !== undefined && told.detail !== undefined)
    return new MagicError(knownCode(told.code), `\`magic ${args.join(" ")}\` failed: ${told.detail}`, {
      cause: error,
      extra: told.next === undefined ? {} : { next: told.next },
    });
  return new MagicError("internal", `\`magic ${args.join(" ")}\` failed: ${last || String(error)}`, { cause: error });
}

function startDev(child: ChildProcess, signal: AbortSignal): Dev {
  const seen: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  let errors = "";
  let ended = false;
  const wake = () => {
    for (const look of waiting) look();
  };
  child.stderr?.on("data", (data: Buffer) => {
    errors = (errors + data.toString("utf8")).slice(-4000);
  });
  if (child.stdout)
    createInterface({ input: child.stdout }).on("line", (line) => {
      seen.push(JSON.parse(line) as Record<string, unknown>);
      wake();
    });
  const exit = once(child, "exit").then(([code]) => {
    ended = true;
    wake();
    return code as number | null;
  });
  return {
    event: <T extends Record<string, unknown>>(type: string, wanted: (event: T) => boolean = () => true) =>
      new Promise<T>((resolve, reject) => {
        const stop = (result: () => void) => {
          clearTimeout(timer);
          waiting.delete(look);
          signal.removeEventListener("abort", look);
          result();
        };
        const timer = setTimeout(
          () => stop(() => reject(failure(["dev"], `no ${type} within ${PATIENCE_MS} ms: ${errors}`, null))),
          PATIENCE_MS,
        );
        const look = () => {
          const at = seen.findIndex((event) => event["type"] === type && wanted(event as T));
          if (at >= 0) stop(() => resolve(seen.splice(at, 1)[0] as T));
          else if (signal.aborted) stop(() => reject(new MagicError("interrupted")));
          else if (ended) stop(() => reject(failure(["dev"], errors, null)));
        };
        waiting.add(look);
        signal.addEventListener("abort", look);
        look();
      }),
    async stop() {
      if (!ended) child.kill("SIGINT");
      return exit;
    },
  };
}
