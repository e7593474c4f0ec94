// magic daemon stop: fine too when none runs.
import { stopDaemon } from "#client/daemon/stop.ts";
import { defineCommand } from "#commands/command.ts";
import { findRoot } from "#shared/paths.ts";

export default defineCommand({
  async run({ output, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
    const progress = output.progress("Stopping the daemon");
    const stopped = await stopDaemon(root).finally(() => progress.done());
    if (stopped.killed) output.warn("It did not end within 20 s and was killed.");
    output.result({ ...stopped, root }, () =>
      stopped.stopped ? `Stopped the daemon (pid ${stopped.pid}).` : "No daemon runs.",
    );
  },
});
