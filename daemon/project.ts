// magic.yaml as the daemon sees it: read, checked, `${env:NAME}` filled in, watched. An edit that is not valid changes nothing:
// the last good configuration stays in force, and the log says what is wrong and where.
import { isUtf8 } from "node:buffer";
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FSWatcher } from "chokidar";
import { MagicError } from "#contract/errors.ts";
import { configInvalid, type Problem, problemLine } from "#contract/problem.ts";
import type { ProjectConfig } from "#contract/project.ts";
import { readProject } from "#contract/project-check.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { PROJECT_FILE } from "#shared/paths.ts";
import { LEADS_NOWHERE, leadsNowhere } from "#shared/plain-file.ts";
import { fillEnvironment, type MissingVariable } from "./project-environment.ts";

/** What is in force, and what is wrong with the newest edit. */
export interface Project {
  /** References are filled in; one whose variable is not set is "" and listed by `missing()`. */
  current(): ProjectConfig;
  missing(): readonly MissingVariable[];
  /** The values that came from the environment, for whoever must keep them out of what is written down. */
  secrets(): readonly string[];
  /** The problems of the newest edit; none while it is the one in force. */
  problems(): readonly Problem[];
  /** Called after a change came into force; returns how to stop. A listener that throws is logged, and the others are called. */
  onChange(listener: (config: ProjectConfig) => void | Promise<void>): () => void;
  /** Reads the file again, at once; resolves to whether it is valid. The watch calls this. */
  reload(): Promise<boolean>;
  close(): Promise<void>;
}

export interface ProjectOptions {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
  /** False: read once. */
  readonly watch: boolean;
}

interface State {
  readonly text: string;
  readonly config: ProjectConfig;
  readonly missing: readonly MissingVariable[];
  readonly secrets: readonly string[];
}

/** Of a file that said something when it was read last. */
const emptied: Problem = {
  file: PROJECT_FILE,
  line: 1,
  column: 1,
  pointer: "",
  code: "empty",
  message: "The file was emptied: what it said stays in force until the daemon is started again.",
  fix: "Write the document into it, or run `magic daemon restart` for every default.",
};

/** How long a file may be empty or gone while it is being replaced. */
const GRACE_MS = 1_000;

/** @throws MagicError `config_invalid` with every problem, when the file is not valid at the start. No file is an empty one. */
export async function openProject(options: ProjectOptions): Promise<Project> {
  const { root, env, logger } = options;
  const path = join(root, PROJECT_FILE);
  const listeners = new Set<(config: ProjectConfig) => void | Promise<void>>();
  const first = interpret(await textOf(path), env);
  if (!("state" in first)) throw configInvalid(first.problems);
  let state: State = first.state;
  let problems: readonly Problem[] = [];
  let refused = "";
  tellMissing(state, logger);

  // Editors empty a file before they write it, git takes one away before it puts another: that is no configuration yet.
  const settled = async (): Promise<string> => {
    const text = await textOf(path);
    if (text !== "" || state.text === "") return text;
    await sleep(GRACE_MS);
    return textOf(path);
  };

  const reload = async (): Promise<boolean> => {
    const text = await settled().catch((error: Error) => error);
    if (text instanceof Error) {
      const { message } = text;
      const fix = "Correct that.";
      problems = [{ file: PROJECT_FILE, line: 1, column: 1, pointer: "", code: "unreadable", message, fix }];
      logger.error("project.unreadable", { message });
      return false;
    }
    if (text === state.text) {
      problems = [];
      return true;
    }
    // Taken away, it is a project with every default; there and empty, it is an accident.
    const found = text.trim() === "" && existsSync(path) ? { problems: [emptied] } : interpret(text, env);
    if (!("state" in found)) {
      problems = found.problems;
      if (text !== refused) logger.error("project.invalid", { problems: problems.map(problemLine) });
      refused = text;
      return false;
    }
    state = found.state;
    problems = [];
    refused = "";
    logger.info("project.changed", { file: PROJECT_FILE });
    tellMissing(state, logger);
    for (const listener of listeners) {
      try {
        await listener(state.config);
      } catch (error) {
        logger.error("project.not_applied", { message: (error as Error).message });
      }
    }
    return true;
  };

  const watcher = options.watch ? watchFile(root, path, serialised(reload), logger) : undefined;
  return {
    current: () => state.config,
    missing: () => state.missing,
    secrets: () => state.secrets,
    problems: () => problems,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    reload,
    close: async () => (await watcher)?.close(),
  };
}

async function textOf(path: string): Promise<string> {
  try {
    // A pipe or a device could be waited for, or read, without end.
    if (!(await stat(path)).isFile()) throw new Error("it is not a file");
    const bytes = await readFile(path);
    // Letters that are none would stand in a key or a name as others.
    if (!isUtf8(bytes)) throw new Error("it is not valid UTF-8");
    return bytes.toString("utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const nowhere = leadsNowhere(path);
    if (code === "ENOENT" && !nowhere) return "";
    const why = nowhere ? LEADS_NOWHERE : (code ?? message);
    throw new MagicError("config_invalid", `${path} cannot be read: ${why}.`, { cause: error });
  }
}

function interpret(
  text: string,
  env: NodeJS.ProcessEnv,
): { readonly state: State } | { readonly problems: readonly Problem[] } {
  const { config, problems } = readProject(text, PROJECT_FILE);
  if (!config) return { problems };
  const { value, missing, secrets } = fillEnvironment(config, env);
  return { state: { text, config: value, missing, secrets } };
}

function tellMissing({ missing }: State, logger: Logger): void {
  if (missing.length > 0)
    logger.warn("project.env_missing", { variables: missing.map(({ name, pointer }) => `${name} (${pointer})`) });
}

// The folder is watched, not the file: editors replace a file rather than write to it. chokidar costs 12 ms to load, which
// nobody should wait for.
async function watchFile(root: string, path: string, changed: () => void, logger: Logger): Promise<FSWatcher> {
  const { watch } = await import("chokidar");
  const watcher = watch(root, {
    depth: 0,
    ignoreInitial: true,
    ignored: (candidate) => candidate !== root && candidate !== path,
  });
  watcher.on("all", changed);
  // What was saved while this was loading.
  watcher.on("ready", changed);
  watcher.on("error", (error) => logger.warn("project.watch_failed", { message: (error as Error).message }));
  return watcher;
}

// Saves that come while one is being read are read once more afterwards, never at the same time.
function serialised(task: () => Promise<unknown>): () => void {
  let running = false;
  let again = false;
  const run = async () => {
    running = true;
    do {
      again = false;
      await task();
    } while (again);
    running = false;
  };
  return () => {
    if (running) again = true;
    else void run();
  };
}
