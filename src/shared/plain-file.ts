// Files of a project or of its state folder: what stands in their place and is none could be waited for, or read, without end.
import { constants, readFileSync, statSync } from "node:fs";
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

/** The file's bytes. Throws not_found, for a folder, a pipe or a device too. */
export function readPlainFile(path: string): Buffer {
  try {
    if (!statSync(path).isFile()) throw new Error("it is not a file");
    return readFileSync(path);
  } catch (error) {
    throw new MagicError("not_found", `${path} cannot be read: ${(error as Error).message}.`, {
      cause: error,
      extra: { next: "Check the path." },
    });
  }
}
