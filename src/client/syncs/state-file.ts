// `--state FILE`: names a sync. For destinations with transactions it holds the sync's id; their state lies beside the rows.
import { link, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { newId } from "#shared/ids.ts";

/** The id in the file; a missing or empty file (`mktemp` makes one) is made with a new one. */
export async function syncIdOf(path: string): Promise<string> {
  return (await idIn(path)) ?? newIdIn(path);
}

async function idIn(path: string): Promise<string | null> {
  // A device (/dev/null) is as empty, and root could put a file in its place; a pipe would be waited for.
  if ((await stat(path).catch(() => undefined))?.isFile() === false) throw notOne(path);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw new MagicError("invalid_request", `The state file ${path} cannot be read: ${error.code}.`);
  });
  if (text.trim() === "") return null;
  let id: unknown;
  try {
    id = (JSON.parse(text) as { sync_id?: unknown } | null)?.sync_id;
  } catch {
    // Told below.
  }
  if (typeof id !== "string" || id === "") throw notOne(path);
  return id;
}

async function newIdIn(path: string): Promise<string> {
  // A link stays one.
  const file = await realpath(path).catch(() => path);
  const sync_id = newId("sync");
  const draft = `${file}.${sync_id}.new`;
  try {
    await writeFile(draft, `${JSON.stringify({ version: 1, sync_id })}\n`, { mode: 0o600, flush: true });
    try {
      // Of several first runs at once one names the sync: a rename would give each its own.
      await link(draft, file);
    } catch {
      const theirs = await idIn(file);
      if (theirs !== null) return theirs;
      // An empty file, or a disk without hard links.
      await rename(draft, file);
    }
  } catch (error) {
    if (isMagicError(error)) throw error;
    const { message } = error as Error;
    throw new MagicError("invalid_request", `The state file ${path} cannot be written: ${message}.`, { cause: error });
  } finally {
    await rm(draft, { force: true });
  }
  return sync_id;
}

function notOne(path: string): MagicError {
  return new MagicError("invalid_request", `${path} is not a state file of a sync: it was left as it is.`);
}
