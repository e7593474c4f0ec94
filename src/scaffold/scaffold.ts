// Makes a new controller: everything is rendered and written beside its place first, then moved there, so that a failure leaves
// nothing behind.
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, lstatSync, mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { CONTROLLER_NAME } from "#contract/controller.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { makeFolder as makeFolders } from "#shared/make-folder.ts";
import { stateFolder } from "#shared/paths.ts";
import { naming } from "#shared/write-error.ts";
import { writeEditorFiles } from "./editor.ts";
import { type Changes, controllersFolder, ensureProject } from "./project.ts";
import { type Language, renderController, type Template } from "./render.ts";

export interface ScaffoldRequest {
  readonly name: string;
  readonly template: Template;
  readonly lang: Language;
  /** The project's folder; magic.yaml is made there if there is none. */
  readonly root: string;
  /** The folder to make it in (`<dir>/<name>`), or its own folder when it is called like it. Default: the project's `controllers`. */
  readonly dir?: string | undefined;
  /** Replace the template's files in a folder that exists; other files there are kept. */
  readonly force: boolean;
}

export interface Scaffolded {
  readonly name: string;
  readonly template: Template;
  readonly lang: Language;
  readonly root: string;
  /** The controller's folder. */
  readonly path: string;
  readonly files: readonly string[];
  /** Files of the project that were missing. */
  readonly project_files: readonly string[];
}

const NAME_FORM = "Use 1 to 63 lower-case letters, digits, dashes and underscores, a letter first.";

/** What is wrong with a new controller's name, if anything. */
export function nameProblem(name: string): string | undefined {
  if (name === "node_modules") return "Choose another: a folder called node_modules is passed over.";
  return new RegExp(CONTROLLER_NAME, "u").test(name) ? undefined : NAME_FORM;
}

/** @throws MagicError validation_failed (name), exists, config_invalid */
export function scaffold(request: ScaffoldRequest): Scaffolded {
  const { name, template, lang, root, force } = request;
  const problem = nameProblem(name);
  if (problem !== undefined)
    throw new MagicError("validation_failed", `${JSON.stringify(name)} is not a controller's name.`, {
      extra: { next: problem },
    });
  const controllers = controllersFolder(root);
  const folder = folderOf(resolve(root, request.dir ?? controllers), name);
  refuseTaken(folder, force);
  const files = renderController({ name, template, lang, path: relative(root, folder).split(sep).join("/") });

  const stage = join(dirname(folder), `.${name}.${randomBytes(4).toString("hex")}.tmp`);
  const changes: Changes = { undo: [], settle: [] };
  try {
    makeFolder(dirname(folder), changes);
    changes.undo.push(() => rmSync(stage, { recursive: true, force: true }));
    makeStage(stage, folder);
    if (existsSync(folder)) cpSync(folder, stage, { recursive: true, verbatimSymlinks: true });
    for (const [file, content] of files) naming(join(folder, file), () => writeFileSync(join(stage, file), content));
    const projectFiles = ensureProject(root, controllers, template, changes);
    const state = stateFolder(root);
    if (!existsSync(state)) changes.undo.push(() => rmSync(state, { recursive: true, force: true }));
    writeEditorFiles(root);
    moveInto(stage, folder, force);
    for (const step of changes.settle) attempt(step);
    return { name, template, lang, root, path: folder, files: [...files.keys()].sort(), project_files: projectFiles };
  } catch (error) {
    // Another command took the place meanwhile, and stands on what this one made around it.
    const lost = isMagicError(error) && error.code === "exists";
    const dropStage = () => rmSync(stage, { recursive: true, force: true });
    for (const step of lost ? [dropStage, ...changes.settle] : changes.undo.reverse()) attempt(step);
    throw error;
  }
}

// What is told of is the folder that was asked for.
function makeStage(stage: string, folder: string): void {
  try {
    mkdirSync(stage);
  } catch (error) {
    const failed = error as NodeJS.ErrnoException;
    failed.message = failed.message.replace(stage, folder);
    failed.path = folder;
    throw failed;
  }
}

function folderOf(dir: string, name: string): string {
  return basename(dir) === name ? dir : join(dir, name);
}

function refuseTaken(folder: string, force: boolean): void {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isDirectory())
    throw new MagicError("exists", `${folder} exists and is not a folder.`, {
      extra: { next: "Choose another name." },
    });
  if (!force) throw taken(folder);
}

function taken(folder: string, options: { cause?: unknown } = {}): MagicError {
  return new MagicError("exists", `${folder} exists already; nothing was written.`, options);
}

// Makes the folders that are missing. Undone, only empty ones go: another command may have put its own into them meanwhile.
function makeFolder(folder: string, { undo }: Changes): void {
  const first = makeFolders(folder);
  if (!first) return;
  for (let at = first; ; at = join(at, relative(at, folder).split(sep)[0] as string)) {
    undo.push(() => rmdirSync(at));
    if (at === folder) return;
  }
}

// What cannot be undone must not keep the rest from being undone, nor take the place of the error.
function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // Told by the error that is thrown on.
  }
}

// An old folder is kept aside until the new one stands. Without --force one that appeared meanwhile is somebody else's.
function moveInto(stage: string, folder: string, force: boolean): void {
  if (!force || !existsSync(folder)) {
    try {
      renameSync(stage, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
      throw taken(folder, { cause: error });
    }
    return;
  }
  const aside = `${stage}.old`;
  renameSync(folder, aside);
  try {
    renameSync(stage, folder);
  } catch (error) {
    renameSync(aside, folder);
    throw error;
  }
  rmSync(aside, { recursive: true });
}
