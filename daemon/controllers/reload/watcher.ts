// Changes in a folder, as the system tells them; where it takes no more watches, by looking again and again.
import { type FSWatcher, watch } from "chokidar";

export interface Watcher {
  /** Resolves when every change from now on is told. */
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
    opened.on("error", (error) => {
      if (!usePolling && opened === watcher && !closed && isFull(error)) poll();
    });
    return opened;
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
      await watcher.close();
    },
  };
}

/** fs.inotify.max_user_watches, max_user_instances or the limit of open files. */
function isFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EMFILE" || code === "ENFILE";
}
