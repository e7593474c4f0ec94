// `--state FILE`: names a sync. For destinations with transactions it holds the sync's id; their state lies beside the rows.
import { readFile, rename, writeFile } from "node:fs/promises";
import { MagicError } from "#contract/errors.ts";
import { newId } from "#shared/ids.ts";

/** The id in the file; a missing file is made with a new one. */
export async function syncIdOf(path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOENT") throw new MagicError("invalid_request", `The state file ${path} cannot be read: ${code}.`);
    const sync_id = newId("sync");
    await writeFile(`${path}.new`, `${JSON.stringify({ version: 1, sync_id })}\n`, { mode: 0o600 }).catch(
      (reason: Error) => {
        throw new MagicError("invalid_request", `The state file ${path} cannot be written: ${reason.message}.`);
      },
    );
    await rename(`${path}.new`, path);
    return sync_id;
  }
  let id: unknown;
  try {
    id = (JSON.parse(text) as { sync_id?: unknown }).sync_id;
  } catch {
    // Told below.
  }
  if (typeof id !== "string" || id === "")
    throw new MagicError("invalid_request", `${path} is not a state file of a sync: it was left as it is.`);
  return id;
}
