// Real `magic` processes on a project of their own; every daemon that a test leaves is killed with the project.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { readRuntimeFile, readStartingMark } from "#client/daemon/files.ts";
import { isSameProcess } from "#shared/process-identity.ts";

export const launcher = fileURLToPath(new URL("../../bin/magic.js", import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly json: Record<string, unknown>;
  /** The last line of stderr as JSON: what a failing command with --json leaves. */
  readonly failure: Record<string, unknown>;
  readonly ms: number;
}

export interface Project {
  readonly root: string;
  readonly home: string;
  magic(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>;
  /** The same as another user; for tests that run as root. */
  magicAs(uid: number, args: readonly string[]): Promise<Outcome>;
  /** The same with the project on a read-only disk; undefined where nothing may be mounted. */
  magicReadOnly(args: readonly string[]): Promise<Outcome | undefined>;
  /** Kills what is left and removes the folders. */
  remove(): Promise<void>;
}

/** A project that is removed when the test ends. */
export async function temporaryProject(): Promise<Project> {
  const project = await makeProject();
  onTestFinished(() => project.remove());
  return project;
}

/** @param program the launcher of another clone. */
export async function makeProject(program = launcher): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), "magic-process-"));
  const root = join(folder, "project");
  const home = join(folder, "home");
  await mkdir(root);
  await mkdir(home);
  const places = { MAGIC_ROOT: root, MAGIC_HOME: home };
  const run = (given: Run) => start(program, given);
  return {
    root,
    home,
    magic: (args, env = {}) => run({ args, cwd: root, env: { ...places, ...env } }),
    magicAs: (uid, args) => run({ args, cwd: root, env: places, uid }),
    async magicReadOnly(args) {
      // A mount of this one process tree: nobody else sees it, and it ends with it.
      const mount = `mount --bind "${root}" "${root}" && mount -o remount,bind,ro "${root}" || exit 99; exec "$@"`;
      const outcome = await run({ args, cwd: home, env: places, under: ["unshare", "-m", "sh", "-c", mount, "sh"] });
      return outcome.code === 99 || outcome.code === null || outcome.stderr.includes("unshare") ? undefined : outcome;
    },
    async remove() {
      for (const read of [readRuntimeFile, readStartingMark]) {
        const found = attempt(() => read(root));
        if (found && isSameProcess(found.pid, found.pid_started)) process.kill(found.pid, "SIGKILL");
      }
      await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

interface Run {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  /** A command that runs it. */
  readonly under?: readonly string[];
}

function start(program: string, { args, cwd, env, uid, under = [] }: Run): Promise<Outcome> {
  const began = performance.now();
  const [command = process.execPath, ...words] = [...under, process.execPath, program, ...args];
  const child = spawn(command, words, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"], HOME: cwd, ...env },
    ...(uid !== undefined && { uid, gid: uid }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
    });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      const parse = (json: string) => JSON.parse(json) as Record<string, unknown>;
      resolve({
        code,
        ...text,
        ms: performance.now() - began,
        get json() {
          return parse(text.stdout);
        },
        get failure() {
          return parse(text.stderr.trimEnd().split("\n").at(-1) ?? "");
        },
      });
    });
  });
}

/** Tries until it does not throw, for half a minute. */
export async function until<T>(attempted: () => Promise<T> | T): Promise<T> {
  for (let left = 600; ; left--) {
    try {
      return await attempted();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Resolves when the process has ended. */
export async function gone(pid: number): Promise<void> {
  await until(() => {
    if (isSameProcess(pid, null)) throw new Error(`process ${pid} is still there`);
  });
}
