// The log on disk: what is new in the stream is appended a few times a second; files rotate by size, so that all of them together
// stay bounded. A full or read-only disk costs log lines, never the daemon.
import { appendFileSync, closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { appendFile, type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DAY_MS } from "#shared/clock.ts";
import { sortable } from "#shared/ids.ts";
import { WITHOUT_WAITING } from "#shared/plain-file.ts";
import { momentOfCursor } from "./log.ts";
import type { LogStream } from "./log-stream.ts";

export interface LogFile {
  /** Resolves when everything logged so far is with the operating system. */
  flush(): Promise<void>;
  /** All files of the log, oldest first, with everything logged so far in them. The caller closes them. */
  open(): Promise<FileHandle[]>;
  /** For the last moments of a crashing process. */
  flushSync(): void;
  close(): Promise<void>;
}

export interface LogFileOptions {
  readonly path: string;
  readonly stream: LogStream;
  /** Bytes after which a file is rotated, and how many rotated ones are kept. */
  readonly maxBytes?: number;
  readonly keep?: number;
  readonly intervalMs?: number;
}

/** Lines that wait at most: the ring must not go around meanwhile. */
const MAX_WAITING = 2_000;
const NEWLINE = 10;
/** Bytes at a file's end in which some line begins. */
const END = 128 * 1024;

/** Opens the log. Lines that are logged from now on sort behind those that it holds. */
export function openLogFile(options: LogFileOptions): LogFile {
  const { path, stream, maxBytes = 8 * 1024 * 1024, keep = 3, intervalMs = 200 } = options;
  goOnBehind(lastCursorIn(path) ?? lastCursorIn(`${path}.1`) ?? "");
  let position = stream.bounds().first;
  let waiting = 0;
  let lost = 0;
  let size: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  const take = (): { readonly lines: number; readonly bytes: Buffer } => {
    const { bytes, next, missed } = stream.tail(position);
    const lines = next - position - missed;
    position = next;
    waiting = 0;
    lost += missed;
    if (lost === 0 || lines === 0) return { lines, bytes: Buffer.concat(bytes) };
    const told = Buffer.from(`${JSON.stringify({ level: "warn", event: "log.lost", lines: lost })}\n`);
    lost = 0;
    return { lines, bytes: Buffer.concat([told, ...bytes]) };
  };

  const writeOnce = async () => {
    const { lines, bytes } = take();
    if (lines === 0) return;
    try {
      // It alone: a project that was moved away is not begun anew where it was.
      if (!existsSync(dirname(path))) mkdirSync(dirname(path), 0o700);
      size ??= await endWhole(path);
      if (size > 0 && size + bytes.length > maxBytes) {
        await rotate(path, keep);
        size = 0;
      }
      await appendFile(path, bytes, { mode: 0o600 });
      size += bytes.length;
    } catch {
      lost += lines;
      size = undefined;
    }
  };

  // One at a time: a rotation must not meet an append, nor the opening of the files.
  const inTurn = <T>(task: () => Promise<T>): Promise<T> => {
    clearTimeout(timer);
    timer = undefined;
    const result = queue.then(task);
    queue = result.catch(() => undefined);
    return result;
  };
  const flush = () => inTurn(writeOnce);
  const stop = stream.subscribe(() => {
    if (++waiting === MAX_WAITING) void flush();
    else timer ??= setTimeout(() => void flush(), intervalMs).unref();
  });

  return {
    flush,
    open: () =>
      inTurn(async () => {
        await writeOnce();
        const handles: FileHandle[] = [];
        try {
          for (const name of await logFiles(path)) handles.push(await open(name, "r"));
        } catch (error) {
          for (const handle of handles) await handle.close();
          throw error;
        }
        return handles;
      }),
    flushSync() {
      const { lines, bytes } = take();
      try {
        if (lines > 0) appendFileSync(path, bytes, { mode: 0o600 });
      } catch {
        // The process is ending and its disk refuses: nothing is left to tell.
      }
    },
    async close() {
      await flush();
      stop();
      clearTimeout(timer);
    },
  };
}

// The clock may have been set back since: readers who go on from the last line would see nothing until it is as late again. Of a clock that
// stood ahead by more than a day nothing is to be left once it is right.
function goOnBehind(cursor: string): void {
  const last = momentOfCursor(cursor);
  const now = Date.now();
  if (last >= now && last < now + DAY_MS) sortable(last + 1);
}

function lastCursorIn(path: string): string | undefined {
  try {
    const file = openSync(path, WITHOUT_WAITING);
    try {
      const { size } = fstatSync(file);
      const end = Buffer.alloc(Math.min(size, END));
      readSync(file, end, 0, end.length, size - end.length);
      return [...end.toString("latin1").matchAll(/^\{"cursor":"([0-9a-z]{26})"/gm)].at(-1)?.[1];
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

// Ends the line of which a full disk or a kill left a part, so that the next one stands by itself; returns how long the file is.
async function endWhole(path: string): Promise<number> {
  const file = await open(path, "a+", 0o600);
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(1), position: Math.max(0, size - 1) });
    if (bytesRead === 0 || buffer[0] === NEWLINE) return size;
    await file.write("\n");
    return size + 1;
  } finally {
    await file.close();
  }
}

/** The files that hold the log, oldest first. */
export async function logFiles(path: string): Promise<string[]> {
  const name = path.slice(dirname(path).length + 1);
  const entries = await readdir(dirname(path)).catch(() => [] as string[]);
  const rotated = entries
    .filter((entry) => entry.startsWith(`${name}.`) && /^\d+$/.test(entry.slice(name.length + 1)))
    .sort((a, b) => Number(b.slice(name.length + 1)) - Number(a.slice(name.length + 1)));
  return [...rotated, ...(entries.includes(name) ? [name] : [])].map((entry) => join(dirname(path), entry));
}

// daemon.log -> daemon.log.1 -> daemon.log.2 ...; the oldest goes.
async function rotate(path: string, keep: number): Promise<void> {
  await rm(`${path}.${keep}`, { force: true });
  for (let number = keep - 1; number >= 1; number--)
    await rename(`${path}.${number}`, `${path}.${number + 1}`).catch(ignoreAbsent);
  await rename(path, keep > 0 ? `${path}.1` : `${path}.0`).catch(ignoreAbsent);
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
