// A file that is there whole, as it was or as it is now, whatever ends this process.
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { namedError } from "./write-error.ts";

/** For its owner alone. `durable`: also whatever ends the machine. Two at once for one path are the caller's to keep apart. */
export async function replaceFile(path: string, text: string, durable = true): Promise<void> {
  const draft = `${path}.new`;
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(text);
    if (durable) await file.sync();
  } catch (error) {
    // On a full disk it would keep what others could have.
    rmSync(draft, { force: true });
    throw namedError(path, error);
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

/** For commands, and where nothing is served yet or any more: any number of processes may replace one file at once. */
export function replaceFileSync(path: string, text: string, mode: number): void {
  const draft = `${path}.${process.pid}.new`;
  try {
    writeFileSync(draft, text, { mode });
    renameSync(draft, path);
  } catch (error) {
    // A full disk: each attempt would leave one more.
    rmSync(draft, { force: true });
    throw namedError(path, error);
  }
}
