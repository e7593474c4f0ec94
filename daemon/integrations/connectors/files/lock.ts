// One run at a time into a file. The operating system's lock, by way of SQLite's: it ends with the process, however that ends.
import { closeSync, existsSync, openSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { OpenRequest } from "../../engine/destination.ts";
import { isBusy } from "../sqlite/errors.ts";

/** Waits for another run into `path`; the answer gives the lock back. Where locks cannot be had there is none. */
export async function lockFile(path: string, request: Pick<OpenRequest, "signal" | "waiting">): Promise<() => void> {
  const { DatabaseSync } = await import("node:sqlite");
  const lock = join(dirname(path), `.${basename(path)}.magic-lock`);
  request.waiting(`another run into ${path} to end`);
  for (;;) {
    if (request.signal.aborted) throw request.signal.reason;
    let db: InstanceType<typeof DatabaseSync> | undefined;
    try {
      closeSync(openSync(lock, "a", 0o600));
      const { ino } = statSync(lock);
      const held = new DatabaseSync(lock, { timeout: 0 });
      db = held;
      held.exec("BEGIN EXCLUSIVE");
      // Whoever had it has removed the file that was opened: the lock is on nothing.
      if (existsSync(lock) && statSync(lock).ino === ino)
        return () => {
          if (!held.isOpen) return;
          rmSync(lock, { force: true });
          held.close();
        };
      held.close();
    } catch (error) {
      db?.close();
      if (!isBusy(error)) return () => {};
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
