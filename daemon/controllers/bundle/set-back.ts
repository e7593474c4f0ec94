// A save that keeps the file's time, as `cp -p` does: who goes by times, as chokidar and esbuild do, sees none.
import { stat } from "node:fs/promises";

/** Milliseconds between a content's time and the file's last change; what was just written has the same for both. */
const APART_MS = 50;

export function hasTimeSetBack(path: string): Promise<boolean> {
  return stat(path).then(
    (one) => one.isFile() && one.ctimeMs - one.mtimeMs > APART_MS,
    () => false,
  );
}
