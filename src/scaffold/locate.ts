// A controller as it is named on the command line: a folder, or the name of one of the project's controllers.
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import { controllersFolder } from "./project.ts";
import { chooseControllers } from "./tests.ts";
import { contractIn } from "./validation.ts";

/** The controller's folder. Throws not_found. */
export function folderFor(given: string, root: string | undefined, cwd: string): string {
  const path = resolve(cwd, given);
  if (existsSync(path) && statSync(path).isDirectory()) {
    if (contractIn(path)) return path;
    throw new MagicError("not_found", `There is no contract.yaml in ${path}.`, {
      extra: { next: "Name a controller's folder." },
    });
  }
  if (root === undefined || /[\\/]/.test(given))
    throw new MagicError("not_found", `There is no folder ${path}.`, { extra: { next: "Check the path." } });
  return chooseControllers(resolve(root, controllersFolder(root)), [given])[0] ?? path;
}
