// Errors of files as ours.
import { MagicError } from "#contract/errors.ts";

export function fileError(error: NodeJS.ErrnoException, path: string): MagicError {
  if (error.code === "ENOENT") return new MagicError("object_not_found", `There is no file ${path}.`);
  if (error.code === "EACCES" || error.code === "EPERM")
    return new MagicError("permission_denied", `${path} may not be opened: ${error.code}.`);
  return new MagicError("source_failed", `${path}: ${error.message}`, { cause: error });
}
