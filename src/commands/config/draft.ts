// The next version of a file, beside it: there is one at a time, so that of several commands at once none undoes another's change.
import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds after which whoever made a draft was killed: nobody works on one for so long. */
const STALE_MS = 10_000;
const LOOK_MS = 10;

/** `work` gets the draft's path once nobody else has one, and renames or removes it; where it throws the draft is removed. */
export async function withDraft<T>(file: string, mode: number, work: (draft: string) => T): Promise<T> {
  const draft = `${file}.new`;
  while (!made(draft, mode)) {
    const since = statSync(draft, { throwIfNoEntry: false })?.mtimeMs;
    // The clock may have been set since.
    if (since !== undefined && Math.abs(Date.now() - since) > STALE_MS) rmSync(draft, { force: true });
    else await sleep(LOOK_MS);
  }
  try {
    return work(draft);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function made(draft: string, mode: number): boolean {
  try {
    closeSync(openSync(draft, "wx", mode));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
