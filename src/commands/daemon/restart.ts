// magic daemon restart: with the flags that it was started with, unless others are given, and at the same port where one was
// asked for.
import { startDaemon } from "#client/daemon/connect.ts";
import { daemonDocument, readRuntimeFile } from "#client/daemon/files.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import { defineCommand } from "#commands/command.ts";
import { portOf } from "#commands/option-values.ts";
import type { RuntimeFile } from "#contract/protocol.ts";
import { findRoot } from "#shared/paths.ts";
import { addListenOptions, flagsOf, type ListenOptions, showDaemon } from "./listen-options.ts";

export default defineCommand<ListenOptions>({
  configure: addListenOptions,
  async run({ output, options, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
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

// The port is decided above; a host that is given now replaces the one of before.
function keptFlags(before: RuntimeFile | undefined, options: ListenOptions): string[] {
  const replaced = options.host === undefined ? ["--port="] : ["--port=", "--host="];
  return (before?.flags ?? []).filter((flag) => !replaced.some((prefix) => flag.startsWith(prefix)));
}

function kept(before: RuntimeFile | undefined, name: string): boolean {
  return before?.flags?.some((flag) => flag.startsWith(`${name}=`)) ?? false;
}
