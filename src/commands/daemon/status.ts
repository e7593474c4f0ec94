// magic daemon status: exit code 0 when it runs, 6 when it does not; the document in both cases.
import { daemonDocument } from "#client/daemon/files.ts";
import { inspectDaemon } from "#client/daemon/inspect.ts";
import { defineCommand } from "#commands/command.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { findRoot } from "#shared/paths.ts";
import { showDaemon } from "./listen-options.ts";

export default defineCommand({
  async run({ output, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
    const { state, detail, runtime, info } = await inspectDaemon(root);
    const running = state === "running" || state === "busy";
    const document = {
      ...(runtime && running ? daemonDocument(runtime) : { root, pid: runtime?.pid ?? null }),
      running,
      state,
      detail,
      ...(info && { uptime_s: info.uptime_s, memory_mb: info.memory_mb, problems: info.problems }),
    };
    for (const problem of info?.problems ?? []) output.warn(`${problem.detail} ${problem.next}`);
    output.result(document, (paint) =>
      runtime && running ? showDaemon(runtime, `Up ${info?.uptime_s ?? 0} s`)(paint) : `${paint.yellow("○")} ${detail}`,
    );
    return running ? exitCodes.ok : exitCodes.daemon_unavailable;
  },
});
