// The state folder: the user's alone, ignored by git, and checked before anything is built on it.
import { chmod, stat } from "node:fs/promises";
import { join } from "node:path";
import { MagicError } from "#contract/errors.ts";
import { makeFolder } from "./make-folder.ts";
import { leadsNowhere } from "./plain-file.ts";
import { replaceFileSync } from "./replace-file.ts";

/** Bytes: SQLite opens no file whose path, with `-journal` behind it, has more than 512. */
const LONGEST_PATH = 512 - "/daemon.lock".length - "-journal".length;

/** Makes the folder (0700) and its .gitignore, and proves that it can be written to. Throws `state_unusable` with the reason. */
export async function prepareStateFolder(folder: string): Promise<void> {
  if (Buffer.byteLength(folder) > LONGEST_PATH)
    throw new MagicError(
      "state_unusable",
      `The path ${folder} is longer than the ${LONGEST_PATH} bytes that SQLite takes.`,
      {
        extra: { next: "Move the project to a folder with a shorter path." },
      },
    );
  try {
    makeFolder(join(folder, "logs"), 0o700);
    const { mode, uid } = await stat(folder);
    if (process.getuid && uid !== process.getuid())
      throw new MagicError("state_unusable", `${folder} belongs to another user (uid ${uid}).`);
    if ((mode & 0o077) !== 0) await chmod(folder, 0o700);
    // Anew: a full disk still takes what is there.
    replaceFileSync(join(folder, ".gitignore"), "*\n", 0o600);
  } catch (error) {
    throw unusable(folder, error);
  }
}

/** The error of the file system as one of ours; any other passes. */
export function unusable(folder: string, error: unknown): unknown {
  const { code = "" } = error as NodeJS.ErrnoException;
  const reason = code === "ENOENT" && leadsNowhere(folder) ? "is a link that leads nowhere" : reasons[code];
  return reason === undefined
    ? error
    : new MagicError("state_unusable", `The state folder ${folder} ${reason}.`, { cause: error });
}

/** The same for an error that came later, from any file: only what speaks of the disk, of permissions, or of something in the file's place. */
export function refusedByDisk(folder: string, error: unknown): unknown {
  const { code = "", path, dest } = error as NodeJS.ErrnoException & { readonly dest?: string };
  if (["EISDIR", "ENOTDIR", "ELOOP"].includes(code) && path !== undefined)
    return new MagicError("state_unusable", `${dest ?? path} cannot be used (${code}).`, {
      cause: error,
      extra: { next: "Move what stands in its place out of the way." },
    });
  return ["EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EIO"].includes(code) ? unusable(folder, error) : error;
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "cannot be read and written by this user",
  EPERM: "cannot be read and written by this user",
  EROFS: "is on a read-only disk",
  ENOSPC: "is on a full disk",
  EDQUOT: "is on a disk whose quota is used up",
  ENOTDIR: "is not a folder",
  EEXIST: "is not a folder",
  ENOENT: "cannot be made: the root does not exist",
  ELOOP: "is a link to itself",
  EIO: "is on a disk that fails",
};
