// Files of a project or of its state folder: what stands in their place and is none could be waited for, or read, without end.
import { constants, lstatSync, readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { MagicError } from "#contract/errors.ts";

/** How a file is opened where something else may stand in its place: a pipe without a writer reads as empty. */
export const WITHOUT_WAITING = constants.O_RDONLY | constants.O_NONBLOCK;

/** The file's text; undefined where there is none. What is thrown names the path, as the synchronous reading of a folder would not. */
export function textIfThere(path: string): Promise<string | undefined> {
  return readFile(path, { encoding: "utf8", flag: WITHOUT_WAITING }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

export const LEADS_NOWHERE = "it is a link that leads nowhere";

/** Whether a link stands there behind which nothing is: other than no file at all, which may be as well as any, it is a fault. */
export function leadsNowhere(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink() && !statSync(path, { throwIfNoEntry: false });
  } catch {
    return false;
  }
}

/** The file's bytes. Throws not_found, for a folder, a pipe or a device too. */
export function readPlainFile(path: string): Buffer {
  try {
    if (!statSync(path).isFile()) throw new Error("it is not a file");
    return readFileSync(path);
  } catch (error) {
    const why = leadsNowhere(path) ? LEADS_NOWHERE : (error as Error).message;
    throw new MagicError("not_found", `${path} cannot be read: ${why}.`, {
      cause: error,
      extra: { next: "Check the path." },
    });
  }
}
