// `--state FILE`: names a sync. For destinations with transactions it holds the sync's id; their state lies beside the rows.
import { readFile, realpath, stat } from "node:fs/promises";
import { MagicError } from "#contract/errors.ts";
import { newId } from "#shared/ids.ts";
import { replaceFile } from "#shared/replace-file.ts";

/** The id in the file; a missing or empty file (`mktemp` makes one) is made with a new one. */
export async function syncIdOf(path: string): Promise<string> {
  // A device (/dev/null) is as empty, and root could put a file in its place; a pipe would be waited for.
  if ((await stat(path).catch(() => undefined))?.isFile() === false) throw notOne(path);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw new MagicError("invalid_request", `The state file ${path} cannot be read: ${error.code}.`);
  });
  if (text.trim() === "") return newIdIn(path);
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
  try {
    await replaceFile(file, `${JSON.stringify({ version: 1, sync_id })}\n`);
  } catch (error) {
    const { message } = error as Error;
    throw new MagicError("invalid_request", `The state file ${path} cannot be written: ${message}.`, { cause: error });
  }
  return sync_id;
}

function notOne(path: string): MagicError {
  return new MagicError("invalid_request", `${path} is not a state file of a sync: it was left as it is.`);
}
