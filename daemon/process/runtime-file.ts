// The files by which commands find the daemon. All are written whole or not at all, readable by the user alone, and only ever
// removed by the one who wrote them: an ending daemon must not delete its successor's.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type RuntimeFile, runtimeNames, type StartingMark } from "#contract/protocol.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { isSameProcess } from "#shared/process-identity.ts";
import { replaceFileSync } from "#shared/replace-file.ts";

export function writeRuntimeFile(state: string, runtime: RuntimeFile): void {
  write(join(state, runtimeNames.runtime), runtime);
}

export function writeStartingMark(state: string, mark: StartingMark): void {
  write(join(state, runtimeNames.starting), mark);
}

/** True when the runtime file is that of a living process. */
export function anotherIsReady(state: string): boolean {
  const owner = runtimeOwner(state);
  return owner !== undefined && isSameProcess(owner.pid, owner.pid_started);
}

/** The process that the runtime file names; undefined where there is no such file, or none that can be read. */
export function runtimeOwner(state: string): Pick<RuntimeFile, "pid" | "pid_started"> | undefined {
  try {
    const found = JSON.parse(String(readPlainFile(join(state, runtimeNames.runtime)))) as RuntimeFile | null;
    return Number.isInteger(found?.pid) ? (found ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the runtime file and the starting mark where they are this process's. Works while dying: never throws. */
export function removeOwnFiles(state: string): void {
  for (const name of [runtimeNames.runtime, runtimeNames.starting]) {
    const path = join(state, name);
    try {
      const { pid } = JSON.parse(String(readPlainFile(path))) as { pid?: number };
      if (pid === process.pid) rmSync(path, { force: true });
    } catch {
      // Absent, or not ours to judge.
    }
  }
}

export function removeStartingMark(state: string): void {
  rmSync(join(state, runtimeNames.starting), { force: true });
}

// At once: a signal that ends the daemon must not come between, and leave a file behind it.
function write(path: string, content: RuntimeFile | StartingMark): void {
  replaceFileSync(path, `${JSON.stringify(content, null, 2)}\n`, 0o600);
}
