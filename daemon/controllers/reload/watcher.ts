// Changes in a folder, as the system tells them; where it takes no more watches, by looking again and again.
import { basename, join } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import { hasTimeSetBack } from "../bundle/set-back.ts";

export interface Watcher {
  /** Resolves when every change from now on is told, or it is closed. */
  readonly ready: Promise<void>;
  /** A file or folder besides. */
  add(path: string): void;
  close(): Promise<void>;
}

export interface WatcherOptions {
  readonly folder: string;
  ignored(path: string): boolean;
  onChange(path: string): void;
  /** From now on it polls: what has changed before may not have been told. */
  onPolling(): void;
}

/** Looking at a file costs a system call; an editor's save is seen soon enough. */
const POLL_MS = 300;

export function openWatcher({ folder, ignored, onChange, onPolling }: WatcherOptions): Watcher {
  const added = new Set([folder]);
  const { promise: ready, resolve: isReady } = Promise.withResolvers<void>();
  let closed = false;
  let watcher = open(false);

  function open(usePolling: boolean): FSWatcher {
    const opened = watch([...added], {
      ignoreInitial: true,
      followSymlinks: false,
      ignored,
      usePolling,
      interval: POLL_MS,
      binaryInterval: POLL_MS,
    });
    opened.once("ready", () => {
      if (opened !== watcher) return;
      isReady();
      if (usePolling) onPolling();
    });
    opened.on("all", (_event, path) => onChange(path));
    if (!usePolling) opened.on("raw", (_event, name, at) => void onTold(name, at as { watchedPath: string }));
    opened.on("error", (error) => {
      if (!usePolling && opened === watcher && !closed && isFull(error)) poll();
    });
    return opened;
  }

  // Of what the system tells, chokidar itself passes on only what changes a file's time.
  async function onTold(name: string | null, { watchedPath }: { watchedPath: string }): Promise<void> {
    const path = name === null || name === basename(watchedPath) ? watchedPath : join(watchedPath, name);
    if ((await hasTimeSetBack(path)) && !closed) onChange(path);
  }

  function poll(): void {
    void watcher.close();
    watcher = open(true);
  }

  return {
    ready,
    add(path) {
      if (added.has(path)) return;
      added.add(path);
      watcher.add(path);
    },
    async close() {
      closed = true;
      isReady();
      await watcher.close();
    },
  };
}

/** fs.inotify.max_user_watches, max_user_instances or the limit of open files. */
function isFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EMFILE" || code === "ENFILE";
}
