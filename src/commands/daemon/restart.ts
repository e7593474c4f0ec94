// magic daemon restart: at the same port, unless another one is asked for.

import { startDaemon } from "#client/daemon/connect.ts";
import { daemonDocument, readRuntimeFile } from "#client/daemon/files.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import { defineCommand } from "#commands/command.ts";
import { findRoot } from "#shared/paths.ts";
import { addListenOptions, flagsOf, type ListenOptions, portOf, showDaemon } from "./listen-options.ts";

export default defineCommand<ListenOptions>({
  configure: addListenOptions,
  async run({ output, options, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
    const before = readRuntimeFile(root);
    const { stopped, killed } = await stopDaemon(root);
    if (killed) output.warn("The daemon did not end within 20 s and was killed.");
    const { runtime, notes } = await startDaemon({
      root,
      host: options.host ?? (stopped ? before?.host : undefined),
      port: portOf(options.port) ?? (stopped ? before?.port : undefined),
      flags: flagsOf(options),
      env,
    });
    for (const note of notes) output.note(note);
    output.result(daemonDocument(runtime), showDaemon(runtime, "Started"));
  },
});
