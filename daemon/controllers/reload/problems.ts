// What is wrong with a controller that was read and built, but does not serve.
import { existsSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { CONTRACT_FILES, HANDLER_FILES } from "#contract/controller-files.ts";
import { isMagicError } from "#contract/errors.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";

interface Folder {
  readonly folder: string;
}

/** `root`: the project's folder, which problems name their files relative to. */
export function twinProblem(one: Folder, twin: Folder, root: string): SourceProblem {
  return {
    file: join(relative(root, one.folder), CONTRACT_FILES[0]),
    line: 1,
    column: 1,
    pointer: "/name",
    code: "name_taken",
    message: `${basename(twin.folder)} has the same name.`,
    fix: "Give one of them another name.",
  };
}

// Of the machine, not of the module.
const REFUSED = "Raise what the machine allows the daemon (`ulimit -n`, `ulimit -u`, memory), and save it again.";

/** A module that does not load, at the first file that the stack names. */
export function loadProblem(one: Folder, error: unknown, root: string): SourceProblem {
  const message = error instanceof Error ? error.message : String(error);
  const code = isMagicError(error) ? error.code : "build_failed";
  const { file, line, column } = placeIn(message, one.folder) ?? { file: handlerOf(one.folder), line: 1, column: 1 };
  return {
    file: relative(root, file),
    line,
    column,
    pointer: "",
    code,
    message: message.split("\n")[0] ?? message,
    fix: code === "overloaded" ? REFUSED : "Correct what the module does while it loads.",
  };
}

const FRAME = /^\s+at (?:async )?(?:[^()\n]* \((?=.*\)$))?(.+?):(\d+):(\d+)\)?$/gm;

/** A stack names files as if each controller lay in `controllers`, in a folder of its own name. */
function placeIn(stack: string, folder: string): { file: string; line: number; column: number } | undefined {
  const controllers = dirname(folder);
  for (const [, path = "", line, column] of stack.matchAll(FRAME)) {
    const [, name, inside] = /^controllers\/([^/]+)\/(.+)/.exec(path) ?? [];
    const files =
      name && inside ? [join(controllers, name, inside), join(folder, inside)] : [join(dirname(controllers), path)];
    const file = files.find((one) => existsSync(one));
    if (file !== undefined) return { file, line: Number(line), column: Number(column) };
  }
  return undefined;
}

function handlerOf(folder: string): string {
  return join(folder, HANDLER_FILES.find((name) => existsSync(join(folder, name))) ?? HANDLER_FILES[0]);
}
