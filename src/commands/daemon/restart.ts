// magic daemon restart: with the flags that it was started with, unless others are given, and at the same port where one was
// asked for.
import { startDaemon } from "#client/daemon/connect.ts";
import { daemonDocument, readRuntimeFile } from "#client/daemon/files.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import { defineCommand } from "#commands/command.ts";
import { portOf } from "#commands/option-values.ts";
import { filledFrom } from "#contract/env-reference.ts";
import type { RuntimeFile } from "#contract/protocol.ts";
import { findRoot } from "#shared/paths.ts";
import { configuredPort, requireFree } from "#shared/port.ts";
import { projectOf } from "#shared/project-file.ts";
import { addListenOptions, flagsOf, type ListenOptions, showDaemon } from "./listen-options.ts";

export default defineCommand<ListenOptions>({
  configure: addListenOptions,
  async run({ output, options, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
    // By a magic.yaml that is not valid, or at an address that is none or taken, no daemon starts: the one that runs goes on.
    const project = projectOf(root);
    const before = readRuntimeFile(root);
    const host = options.host ?? kept(before, "--host") ?? filledFrom(env, project.daemon?.host ?? "127.0.0.1");
    const port = portOf(options.port) ?? (kept(before, "--port") === undefined ? undefined : before?.port);
    const next = port ?? configuredPort(project) ?? 0;
    await requireFree(next === before?.port ? 0 : next, host);
    const { killed } = await stopDaemon(root);
    if (killed) output.warn("The daemon did not end within 20 s and was killed.");
    const { runtime, notes } = await startDaemon({
      root,
      host: options.host,
      port,
      flags: [...keptFlags(before, options), ...flagsOf(options, cwd)],
      env,
    });
    for (const note of notes) output.note(note);
    output.result(daemonDocument(runtime), showDaemon(runtime, "Started"));
  },
});

// The port is decided above; a host that is given now replaces the one of before.
function keptFlags(before: RuntimeFile | undefined, options: ListenOptions): string[] {
  const replaced = options.host === undefined ? ["--port="] : ["--port=", "--host="];
  return (before?.flags ?? []).filter((flag) => !replaced.some((prefix) => flag.startsWith(prefix)));
}

function kept(before: RuntimeFile | undefined, name: string): string | undefined {
  const flag = before?.flags?.find((one) => one.startsWith(`${name}=`));
  return flag?.slice(name.length + 1);
}
