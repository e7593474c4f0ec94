// One daemon a root: the owner holds a SQLite file with an exclusive lock. The operating system frees it when the owner dies,
// however it dies, so there is no stale lock to clean up.
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { MagicError } from "#contract/errors.ts";
import { unusable } from "#shared/state-folder.ts";

export interface OwnerLock {
  release(): void;
}

/** Milliseconds. Two that start at the same moment can refuse each other: both try again, at times that differ. */
const PATIENCE = 1_500;

const BUSY = 5;
const LOCKED = 6;

/**
 * Throws `daemon_owned` while another process holds it, `state_unusable` when the file cannot be used.
 * @param isReady true when another daemon is known to be up: then there is nothing to wait for.
 */
export async function acquireLock(path: string, isReady: () => boolean): Promise<OwnerLock> {
  const until = performance.now() + PATIENCE;
  for (;;) {
    const held = tryLock(path);
    if (held) return held;
    if (isReady() || performance.now() > until)
      throw new MagicError("daemon_owned", "Another daemon owns this root, or is starting or stopping right now.");
    await sleep(20 + Math.random() * 130);
  }
}

// Never open this file elsewhere in the process: closing any descriptor of it would drop the POSIX lock.
function tryLock(path: string): OwnerLock | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; BEGIN IMMEDIATE; COMMIT");
    const held = database;
    return { release: () => held.close() };
  } catch (error) {
    database?.close();
    const code = (error as { errcode?: number }).errcode ?? 0;
    if ((code & 0xff) === BUSY || (code & 0xff) === LOCKED) return undefined;
    throw lockError(path, error, code);
  }
}

// https://www.sqlite.org/rescode.html: 8 READONLY, 10 IOERR, 11 CORRUPT, 13 FULL, 14 CANTOPEN, 26 NOTADB.
function lockError(path: string, error: unknown, code: number): unknown {
  const message = (error as Error).message;
  if (code === 0) return unusable(path, error);
  if ((code & 0xff) === 11 || (code & 0xff) === 26)
    return new MagicError("state_unusable", `The lock file ${path} is damaged; it holds nothing.`, {
      cause: error,
      extra: { next: "`magic doctor --fix` removes it." },
    });
  return new MagicError("state_unusable", `The lock file ${path} cannot be used: ${message}.`, { cause: error });
}
