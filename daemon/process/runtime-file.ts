// The files by which commands find the daemon. All are written whole or not at all, readable by the user alone, and only ever
// removed by the one who wrote them: an ending daemon must not delete its successor's.
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RuntimeFile, runtimeNames, type StartingMark } from "#contract/protocol.ts";
import { isSameProcess } from "#shared/process-identity.ts";

/** Small files on the way up and down, where nothing is served yet or any more: written in place, synchronously. */
export function writeRuntimeFile(state: string, runtime: RuntimeFile): void {
  writeWhole(join(state, runtimeNames.runtime), runtime);
}

export function writeStartingMark(state: string, mark: StartingMark): void {
  writeWhole(join(state, runtimeNames.starting), mark);
}

/** True when the runtime file is that of a living process. */
export function anotherIsReady(state: string): boolean {
  const owner = runtimeOwner(state);
  return owner !== undefined && isSameProcess(owner.pid, owner.pid_started);
}

/** The process that the runtime file names; undefined where there is no such file, or none that can be read. */
export function runtimeOwner(state: string): Pick<RuntimeFile, "pid" | "pid_started"> | undefined {
  try {
    const found = JSON.parse(readFileSync(join(state, runtimeNames.runtime), "utf8")) as RuntimeFile | null;
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
      const { pid } = JSON.parse(readFileSync(path, "utf8")) as { pid?: number };
      if (pid === process.pid) rmSync(path, { force: true });
    } catch {
      // Absent, or not ours to judge.
    }
  }
}

export function removeStartingMark(state: string): void {
  rmSync(join(state, runtimeNames.starting), { force: true });
}

function writeWhole(path: string, content: unknown): void {
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    // A full disk: each attempt would leave one more.
    rmSync(temporary, { force: true });
    throw error;
  }
}
