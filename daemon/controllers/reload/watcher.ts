// Changes in a folder, as the system tells them; where it takes no more watches, by looking again and again.
import { lstatSync } from "node:fs";
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
  /** It began anew: what has changed before may not have been told. */
  onRenewed(): void;
}

/** Looking at a file costs a system call; an editor's save is seen soon enough. */
const POLL_MS = 300;
/** What chokidar passes on it has passed on by then. */
const TOLD_WITHIN_MS = 200;
/** A save is told to it several times, and by it once. */
const TOLD_BEFORE_MS = 100;

export function openWatcher({ folder, ignored, onChange, onRenewed }: WatcherOptions): Watcher {
  const added = new Set([folder]);
  const { promise: ready, resolve: isReady } = Promise.withResolvers<void>();
  /** What each folder was, and each link beside them, when it was seen first. */
  const identities = new Map<string, string | undefined>();
  /** When the system told of each path, and when chokidar did. */
  const [seenAt, toldAt] = [new Map<string, number>(), new Map<string, number>()];
  let closed = false;
  let renewed = false;
  let looking: NodeJS.Timeout | undefined;
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
      const seen = opened.getWatched();
      const inside = (seen[folder] ?? []).map((name) => join(folder, name));
      for (const path of [...Object.keys(seen), ...inside]) identities.set(path, identityOf(path));
      isReady();
      if (renewed) onRenewed();
    });
    opened.on("all", (event, path) => {
      if (event === "addDir" && !identities.has(path)) identities.set(path, identityOf(path));
      toldAt.set(path, Date.now());
      onChange(path);
    });
    if (!usePolling) opened.on("raw", (_event, name, at) => void onTold(name, at as { watchedPath: string }));
    opened.on("error", (error) => {
      if (!usePolling && opened === watcher && !closed && isFull(error)) renew(true);
    });
    return opened;
  }

  // Of what the system tells, chokidar itself passes on only what changes a file's time.
  async function onTold(name: string | null, { watchedPath }: { watchedPath: string }): Promise<void> {
    const path = name === null || name === basename(watchedPath) ? watchedPath : join(watchedPath, name);
    seenAt.set(path, Date.now());
    looking ??= setTimeout(look, TOLD_WITHIN_MS);
    if ((await hasTimeSetBack(path)) && !closed) onChange(path);
  }

  // Of a file that was replaced several times at once, and of a folder that took another one's place, chokidar may go on to watch what was
  // there before.
  function look(): void {
    looking = undefined;
    const seen = [...seenAt];
    const isUntold = ([path, at]: [string, number]) => (toldAt.get(path) ?? 0) < at - TOLD_BEFORE_MS;
    const untold = seen.filter(isUntold).map(([path]) => path);
    const isReplaced =
      seen.some(([path]) => identities.has(path)) &&
      [...identities].some(([path, identity]) => (identityOf(path) ?? identity) !== identity);
    seenAt.clear();
    toldAt.clear();
    if (isReplaced) renew(false);
    for (const path of untold) onChange(path);
  }

  function renew(usePolling: boolean): void {
    renewed = true;
    identities.clear();
    void watcher.close();
    watcher = open(usePolling);
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
      clearTimeout(looking);
      isReady();
      await watcher.close();
    },
  };
}

/** The system may give the number of what was removed to what comes next. */
function identityOf(path: string): string | undefined {
  try {
    const { ino, birthtimeMs } = lstatSync(path);
    return `${ino} ${birthtimeMs}`;
  } catch {
    return undefined;
  }
}

/** fs.inotify.max_user_watches, max_user_instances or the limit of open files. */
function isFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EMFILE" || code === "ENFILE";
}
