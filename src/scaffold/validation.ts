// `magic validate`: which files to check, and every problem in them. Needs no daemon.
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import {
  CONTRACT_FILES,
  HANDLER_FILES,
  isPassedOver,
  missingHandler,
  unreadableContract,
} from "#contract/controller-files.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { type Problem, sortProblems } from "#contract/problem.ts";
import type { ProjectConfig } from "#contract/project.ts";
import { readProject } from "#contract/project-check.ts";
import { TYPES_FILE, typesOf } from "#contract/types.ts";
import { CONTROLLERS_FOLDER, hasProjectFile, PROJECT_FILE, shownPath } from "#shared/paths.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { whereWritable, writeEditorFiles, writeIfDifferent } from "./editor.ts";
import { placeIn, type Read, warningsOf } from "./warnings.ts";

export interface CheckedFile {
  readonly file: string;
  readonly kind: "project" | "contract";
  readonly name?: string;
  readonly version?: string;
}

export interface Validation {
  readonly valid: boolean;
  readonly problems: readonly Problem[];
  /** What is not wrong but will not work as it stands. */
  readonly warnings: readonly Problem[];
  readonly checked: readonly CheckedFile[];
}

interface Work extends Read {
  readonly problems: Problem[];
  readonly checked: CheckedFile[];
  readonly contracts: { file: string; contract: ControllerContract }[];
  config: ProjectConfig | undefined;
}

/** Checks controller folders, contract files and magic.yaml; the whole project at `root` where no path is given. */
export function validatePaths(paths: readonly string[], root: string | undefined, cwd: string): Validation {
  const work: Work = { cwd, problems: [], checked: [], contracts: [], sources: new Map(), config: undefined };
  if (paths.length > 0) for (const path of paths) checkPath(resolve(cwd, path), path, work);
  else if (root !== undefined) checkProject(root, work);
  else if (contractIn(cwd)) checkController(cwd, work);
  else
    throw new MagicError("usage", `There is no ${PROJECT_FILE} here or above, and no path was given.`, {
      extra: { next: "Name a controller's folder, or make a project with `magic scaffold --name hello`." },
    });
  duplicates(work);
  return {
    valid: work.problems.length === 0,
    problems: sortProblems(work.problems),
    warnings: sortProblems(warningsOf(work)),
    checked: work.checked,
  };
}

function checkPath(path: string, given: string, work: Work): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new MagicError("not_found", `There is no ${given}.`, { extra: { next: "Check the path." } });
  if (found.isDirectory()) checkFolder(path, work);
  else if (/^magic\.(ya?ml|json)$/.test(basename(path))) checkConfiguration(path, work);
  else if (/\.[mc]?[jt]s$/.test(path))
    throw new MagicError("usage", `${given} is code, and no contract.`, {
      extra: { next: "Name its folder, a contract file or magic.yaml." },
    });
  else checkContract(path, work);
}

function checkFolder(folder: string, work: Work): void {
  if (contractIn(folder)) checkController(folder, work);
  else if (hasProjectFile(folder)) checkProject(folder, work);
  else {
    const inside = controllersIn(folder);
    for (const controller of inside) checkController(controller, work);
    if (closedIn(folder, work) + inside.length === 0) noContract(folder, work);
  }
}

function noContract(folder: string, work: Work): void {
  problem(
    work,
    join(folder, "contract.yaml"),
    "contract_missing",
    "There is no contract.yaml.",
    "Write one, or make a controller with `magic scaffold`.",
  );
}

function checkProject(root: string, work: Work): void {
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory())
    throw new MagicError("not_found", `There is no folder ${root}.`, { extra: { next: "Check the path." } });
  const path = join(root, PROJECT_FILE);
  if (hasProjectFile(root)) checkConfiguration(path, work);
  const named = work.config?.controllers ?? CONTROLLERS_FOLDER;
  const folder = resolve(root, named);
  // A project of the gateway's or of syncs alone has none, also where it writes the default out.
  if (named !== CONTROLLERS_FOLDER && !existsSync(folder))
    work.problems.push({
      ...placeIn(work, shownPath(path, work.cwd), "/controllers"),
      code: "folder_missing",
      message: `The folder ${named} does not exist.`,
      fix: "Make it, or correct `controllers` in magic.yaml.",
      value: named,
    });
  for (const controller of controllersIn(folder)) checkController(controller, work);
  closedIn(folder, work);
  const tsconfig = join(root, "tsconfig.json");
  if (existsSync(tsconfig) && readFileSync(tsconfig, "utf8").includes(".magic/tsconfig.json"))
    whereWritable(() => writeEditorFiles(root));
}

function checkConfiguration(path: string, work: Work): void {
  const { config, problems } = readProject(readPlainFile(path), shownPath(path, work.cwd));
  work.problems.push(...problems);
  work.checked.push({ file: shownPath(path, work.cwd), kind: "project" });
  work.config ??= config;
}

/** Folders that nobody may look into, which may be controllers: a problem each. Answers how many there are. */
function closedIn(folder: string, work: Work): number {
  if (!existsSync(folder)) return 0;
  let closed = 0;
  for (const name of readdirSync(folder).filter((each) => !isPassedOver(each)))
    try {
      readdirSync(join(folder, name));
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      if (code === "ENOTDIR" || code === "ENOENT") continue;
      closed++;
      unreadable(join(folder, name, CONTRACT_FILES[0]), message, work);
    }
  return closed;
}

function checkController(folder: string, work: Work): void {
  const name = contractIn(folder);
  if (name) checkContract(join(folder, name), work);
  else noContract(folder, work);
  if (HANDLER_FILES.some((file) => existsSync(join(folder, file)))) return;
  const { file, message, fix } = missingHandler(readdirSync(folder));
  problem(work, join(folder, file), "handler_missing", message, fix);
}

function checkContract(path: string, work: Work): void {
  const content = contentOf(path, work);
  if (!content) return;
  const { contract, problems } = readContract(content, shownPath(path, work.cwd));
  work.problems.push(...problems);
  work.checked.push({
    file: shownPath(path, work.cwd),
    kind: "contract",
    ...(contract && { name: contract.name, version: contract.version }),
  });
  if (!contract) return;
  work.contracts.push({ file: shownPath(path, work.cwd), contract });
  refreshTypes(dirname(path), contract);
}

// One that cannot be read is a problem beside the others', as it is for the daemon.
function contentOf(path: string, work: Work): Buffer | undefined {
  try {
    return readPlainFile(path);
  } catch (error) {
    if (!isMagicError(error)) throw error;
    unreadable(path, (error.cause as Error).message, work);
    return undefined;
  }
}

function unreadable(path: string, why: string, work: Work): void {
  const { message, fix } = unreadableContract(why);
  problem(work, path, "contract_unreadable", message, fix);
}

/** Brings contract.types.ts up to date where there is one; a link could lead to any file of whoever validates, which would be overwritten. */
export function refreshTypes(folder: string, contract: ControllerContract): void {
  const path = join(folder, TYPES_FILE);
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile())
    whereWritable(() => writeIfDifferent(path, typesOf(contract)));
}

function duplicates(work: Work): void {
  const first = new Map<string, string>();
  for (const { file, contract } of work.contracts) {
    const other = first.get(contract.name);
    if (other !== undefined && other !== file)
      problem(
        work,
        resolve(work.cwd, file),
        "duplicate_name",
        `${other} is called \`${contract.name}\` as well.`,
        "Give one of them another name.",
      );
    first.set(contract.name, other ?? file);
  }
}

export function contractIn(folder: string): string | undefined {
  return CONTRACT_FILES.find((file) => existsSync(join(folder, file)));
}

/** The controllers' folders in a folder, by name; none where it is not there. */
export function controllersIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => !isPassedOver(name))
    .map((name) => join(folder, name))
    .filter((path) => contractIn(path) || HANDLER_FILES.some((file) => existsSync(join(path, file))))
    .sort();
}

function problem(work: Work, path: string, code: string, message: string, fix: string): void {
  work.problems.push({ file: shownPath(path, work.cwd), line: 1, column: 1, pointer: "", code, message, fix });
}
