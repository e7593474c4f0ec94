// What commands find the daemon by, looked after while it serves. A runtime file that somebody removed or damaged is written again:
// without it the daemon could neither be found nor stopped. A daemon whose state folder is gone (`git clean -fdx`), or the database or the
// lock in it, ends: what it would go on acknowledging is kept nowhere, and another one may own the root by now.
import { closeSync, fstatSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { type RuntimeFile, runtimeNames } from "#contract/protocol.ts";
import { runtimeOwner, writeRuntimeFile } from "./runtime-file.ts";

export interface Presence {
  readonly state: string;
  /** Undefined where the state is in PostgreSQL. */
  readonly database: string | undefined;
  readonly runtime: RuntimeFile;
  readonly end: (reason: string) => void;
  /** True once the daemon removes its files itself. */
  readonly ending: () => boolean;
  readonly everyMs?: number;
}

/** Returns how to stop watching. */
export function watchPresence({ state, database, runtime, end, ending, everyMs = 5_000 }: Presence): () => void {
  // The folder itself and not its path: a project that is moved takes its daemon along.
  const folder = openSync(state, "r");
  // Some file systems count no links of folders.
  const counted = fstatSync(folder).nlink > 0;
  // What stands in the write-ahead log alone, which may be everything, is put into the database when that is closed in order: a log without
  // a name no later start would read.
  const parts = database === undefined ? [] : [database, `${database}-wal`, `${database}-shm`];
  const files = parts.map((path) => ({ path, reason: "database removed" }));
  const lock = { path: join(state, runtimeNames.lock), reason: "lock removed" };
  const placeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;
  const held = [...files, lock].map((file) => ({ ...file, place: placeOf(file.path) }));
  const look = () => {
    if (ending()) return;
    try {
      const own = fstatSync(folder);
      if (counted && own.nlink === 0) return end("state folder removed");
      const isThere = () => {
        const there = statSync(state, { throwIfNoEntry: false });
        return there?.ino === own.ino && there.dev === own.dev;
      };
      if (!isThere()) return;
      const removed = held.find(({ path, place }) => place !== undefined && placeOf(path) !== place);
      const lost = runtimeOwner(state) === undefined;
      // What is moved between two looks has taken all of it along.
      if (!isThere()) return;
      if (removed) end(removed.reason);
      else if (lost) writeRuntimeFile(state, runtime);
    } catch {
      // A full disk, a folder above that may not be entered for now, a file system of the network: the next look tries again.
    }
  };
  const timer = setInterval(look, everyMs).unref();
  return () => {
    clearInterval(timer);
    closeSync(folder);
  };
}
