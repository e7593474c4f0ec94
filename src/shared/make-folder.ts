// mkdir -p. Node's own recursive mkdir never returns where a parent exists and refuses with ENOENT, as /proc does.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Makes the folder and what is missing above it; the topmost folder that it made, or undefined. Throws the system's error. */
export function makeFolder(path: string, mode?: number): string | undefined {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at);
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
  return missing[0];
}
