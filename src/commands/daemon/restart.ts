// magic daemon restart: with the flags that it was started with, unless others are given, and at the same port where one was
// asked for.
import { resolve } from "node:path";
import { startDaemon } from "#client/daemon/connect.ts";
import { daemonDocument, readRuntimeFile } from "#client/daemon/files.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import { defineCommand } from "#commands/command.ts";
import { portOf } from "#commands/option-values.ts";
import { filledFrom } from "#contract/env-reference.ts";
import type { RuntimeFile } from "#contract/protocol.ts";
import { findRoot, stateFolder } from "#shared/paths.ts";
import { configuredPort, requireFree } from "#shared/port.ts";
import { projectOf } from "#shared/project-file.ts";
import { prepareStateFolder } from "#shared/state-folder.ts";
import { userPair } from "#shared/user-pair.ts";
import { addListenOptions, flagsOf, type ListenOptions, showDaemon } from "./listen-options.ts";

export default defineCommand<ListenOptions>({
  configure: addListenOptions,
  async run({ output, options, globals, env, cwd }) {
    const root = findRoot(globals.root, env, cwd).path;
    // By a magic.yaml or a certificate that is not valid, at an address that is none or taken, on a full disk no daemon starts: the one that
    // runs goes on.
    const project = projectOf(root);
    const before = readRuntimeFile(root);
    const host = options.host ?? kept(before, "--host") ?? filledFrom(env, project.daemon?.host ?? "127.0.0.1");
    const port = portOf(options.port) ?? (kept(before, "--port") === undefined ? undefined : before?.port);
    const next = port ?? configuredPort(project) ?? 0;
    await requireFree(next === before?.port ? 0 : next, host);
    await requirePair((name) => {
      const configured = project.daemon?.tls?.[name];
      const given = { cert: options.tlsCert, key: options.tlsKey }[name];
      if (given !== undefined) return resolve(cwd, given);
      return kept(before, `--tls-${name}`) ?? (configured && resolve(root, filledFrom(env, configured)));
    });
    await prepareStateFolder(stateFolder(root));
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

async function requirePair(fileOf: (name: "cert" | "key") => string | undefined): Promise<void> {
  const [cert, key] = [fileOf("cert"), fileOf("key")];
  if (cert !== undefined || key !== undefined) await userPair(cert, key);
}

// The port is decided above; a host that is given now replaces the one of before.
function keptFlags(before: RuntimeFile | undefined, options: ListenOptions): string[] {
  const replaced = options.host === undefined ? ["--port="] : ["--port=", "--host="];
  return (before?.flags ?? []).filter((flag) => !replaced.some((prefix) => flag.startsWith(prefix)));
}

function kept(before: RuntimeFile | undefined, name: string): string | undefined {
  const flag = before?.flags?.find((one) => one.startsWith(`${name}=`));
  return flag?.slice(name.length + 1);
}
