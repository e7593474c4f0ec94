// magic daemon restart: with the flags that it was started with, unless others are given, and at the same port where one was
// asked for.
import { join } from "node:path";
import { startDaemon } from "#client/daemon/connect.ts";
import { daemonDocument, readRuntimeFile } from "#client/daemon/files.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import { defineCommand } from "#commands/command.ts";
import { portOf } from "#commands/option-values.ts";
import { configInvalid } from "#contract/problem.ts";
import { readProject } from "#contract/project-check.ts";
import type { RuntimeFile } from "#contract/protocol.ts";
import { findRoot, hasProjectFile, PROJECT_FILE } from "#shared/paths.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { addListenOptions, flagsOf, type ListenOptions, showDaemon } from "./listen-options.ts";

export default defineCommand<ListenOptions>({
  configure: addListenOptions,
  async run({ output, options, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
    requireProject(root);
    const before = readRuntimeFile(root);
    const { killed } = await stopDaemon(root);
    if (killed) output.warn("The daemon did not end within 20 s and was killed.");
    const { runtime, notes } = await startDaemon({
      root,
      host: options.host,
      port: portOf(options.port) ?? (kept(before, "--port") ? before?.port : undefined),
      flags: [...keptFlags(before, options), ...flagsOf(options)],
      env,
    });
    for (const note of notes) output.note(note);
    output.result(daemonDocument(runtime), showDaemon(runtime, "Started"));
  },
});

// By a magic.yaml that is not valid no daemon starts: the one that runs goes on by the last that was.
function requireProject(root: string): void {
  const written = hasProjectFile(root) ? readPlainFile(join(root, PROJECT_FILE)) : "";
  if (String(written).trim() === "") return;
  const { problems } = readProject(written, PROJECT_FILE);
  if (problems.length > 0) throw configInvalid(problems);
}

// The port is decided above; a host that is given now replaces the one of before.
function keptFlags(before: RuntimeFile | undefined, options: ListenOptions): string[] {
  const replaced = options.host === undefined ? ["--port="] : ["--port=", "--host="];
  return (before?.flags ?? []).filter((flag) => !replaced.some((prefix) => flag.startsWith(prefix)));
}

function kept(before: RuntimeFile | undefined, name: string): boolean {
  return before?.flags?.some((flag) => flag.startsWith(`${name}=`)) ?? false;
}
