// What is wrong with a controller that was read and built, but does not serve.
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CONTRACT_FILES, HANDLER_FILES } from "#contract/controller-files.ts";
import { isMagicError } from "#contract/errors.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";

interface Folder {
  readonly folder: string;
}

export function twinProblem(one: Folder, twin: Folder): SourceProblem {
  return {
    file: join(basename(dirname(one.folder)), basename(one.folder), CONTRACT_FILES[0]),
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

/** A module that does not load, at the first of its own lines that the stack names. */
export function loadProblem(one: Folder, error: unknown): SourceProblem {
  const message = error instanceof Error ? error.message : String(error);
  const code = isMagicError(error) ? error.code : "build_failed";
  const [, file, line, column] = /controllers\/[^/]+\/([^\s:()]+):(\d+):(\d+)/.exec(message) ?? [];
  return {
    file: join(basename(dirname(one.folder)), basename(one.folder), file ?? handlerOf(one.folder)),
    line: Number(line ?? 1),
    column: Number(column ?? 1),
    pointer: "",
    code,
    message: message.split("\n")[0] ?? message,
    fix: code === "overloaded" ? REFUSED : "Correct what the module does while it loads.",
  };
}

function handlerOf(folder: string): string {
  return HANDLER_FILES.find((name) => existsSync(join(folder, name))) ?? HANDLER_FILES[0];
}
