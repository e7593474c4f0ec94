// magic daemon logs: the files themselves, so that they can be read when the daemon is down, and why it went down.
import { open } from "node:fs/promises";
import { join } from "node:path";
import { defineCommand } from "#commands/command.ts";
import { wholeOf } from "#commands/option-values.ts";
import { MagicError } from "#contract/errors.ts";
import { runtimeNames } from "#contract/protocol.ts";
import type { LogEntry } from "#contract/wire/logs.ts";
import { showLogLine } from "#output/log-line.ts";
import { findRoot, stateFolder } from "#shared/paths.ts";

interface Options {
  readonly lines: string;
}

export default defineCommand<Options>({
  configure: (command) => command.option("-n, --lines <n>", "the last lines to show", "200"),
  async run({ options, output, globals, env, cwd }) {
    const wanted = wholeOf(options.lines, "--lines", 1) ?? 200;
    const state = stateFolder(findRoot(globals.root, env, cwd).path);
    const lines = (await tail(join(state, runtimeNames.log), wanted)).map(parse).filter((line) => line !== undefined);
    await output.events(lines, showLogLine);
    // What the runtime itself printed when it died: an aborted process writes no log line.
    for (const text of await tail(join(state, runtimeNames.output), 20)) output.note(text);
  },
});

const CHUNK = 4 * 1024 * 1024;

async function tail(path: string, lines: number): Promise<string[]> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw new MagicError("state_unusable", `${path} cannot be read (${error.code}).`, { cause: error });
  });
  if (!file) return [];
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - CHUNK);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, CHUNK)), 0, Math.min(size, CHUNK), from);
    const text = buffer.toString("utf8", 0, bytesRead);
    return text
      .split("\n")
      .slice(from > 0 ? 1 : 0)
      .filter((line) => line !== "")
      .slice(-lines);
  } finally {
    await file.close();
  }
}

function parse(text: string): LogEntry | undefined {
  try {
    return JSON.parse(text) as LogEntry;
  } catch {
    return undefined;
  }
}
