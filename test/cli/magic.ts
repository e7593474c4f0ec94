// Runs the built command line as users do.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const program = fileURLToPath(new URL("../../bin/magic.js", import.meta.url));

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Sandbox {
  /** An empty folder; the state folder beside it is its own. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  magic(args: readonly string[], options?: { env?: NodeJS.ProcessEnv; cwd?: string; input?: string }): Promise<Outcome>;
  /** Stops the daemon of the folder, and removes everything. */
  dispose(): Promise<void>;
}

export function createSandbox(): Sandbox {
  const base = mkdtempSync(join(tmpdir(), "magic-cli-"));
  const folder = mkdtempSync(join(base, "project-"));
  const { MAGIC_URL, MAGIC_ROOT, MAGIC_API_KEY, MAGIC_OUTPUT, CI, FORCE_COLOR, ...rest } = process.env;
  const env = { ...rest, MAGIC_HOME: join(base, "home") };
  const magic: Sandbox["magic"] = (args, options = {}) =>
    new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [program, ...args],
        { cwd: options.cwd ?? folder, env: { ...env, ...options.env }, maxBuffer: 64 * 1024 * 1024, timeout: 120_000 },
        (error, stdout, stderr) => resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
      );
      child.stdin?.end(options.input ?? "");
    });
  return {
    folder,
    env,
    magic,
    async dispose() {
      await magic(["daemon", "stop", "--json"]);
      rmSync(base, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

/** Control bytes but newline; a terminal's escape sequences begin with one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
export const CONTROL = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;
