// Node names the file that the system does not open, and none where it takes no bytes (ENOSPC, EDQUOT, EFBIG, EIO).

/** The error of a write to `path`, which names it. */
export function namedError(path: string, error: unknown): unknown {
  const failed = error as NodeJS.ErrnoException;
  if (!(error instanceof Error) || failed.syscall === undefined || failed.path !== undefined) return error;
  failed.message += ` '${path}'`;
  failed.path = path;
  return failed;
}

/** Runs it; what it throws names the file. */
export function naming<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw namedError(path, error);
  }
}
