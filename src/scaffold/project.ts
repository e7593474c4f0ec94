// The project around a new controller: magic.yaml, tsconfig.json, .gitignore, and what the db template needs.
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { CONTROLLERS_FOLDER, hasProjectFile, PROJECT_FILE } from "#shared/paths.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { projectOf, readProjectFile } from "#shared/project-file.ts";
import { naming } from "#shared/write-error.ts";
import { edited } from "./edit.ts";
import { renderFile, type Template } from "./render.ts";

/** What scaffolding changed: how to undo it, the last first, and what to clear away once all of it stands. */
export interface Changes {
  readonly undo: (() => void)[];
  readonly settle: (() => void)[];
}

/** For what needs a project. */
export function noProject(): MagicError {
  return new MagicError("usage", `There is no ${PROJECT_FILE} here or above.`, {
    extra: { next: "Make a project with `magic scaffold --name hello`." },
  });
}

/** The folder of a project's controllers, as magic.yaml says it. Throws config_invalid for a file that is not valid. */
export function controllersFolder(root: string): string {
  return projectOf(root).controllers ?? CONTROLLERS_FOLDER;
}

/** Makes the project's files that are missing; answers their names. What it makes is noted in `changes` beforehand. */
export function ensureProject(root: string, controllers: string, template: Template, changes: Changes): string[] {
  const made: string[] = [];
  const make = (name: string, content: string) => {
    const path = join(root, name);
    const file = openNew(path);
    if (file === undefined) return;
    // Written in part, it would be a file of the user's to the next attempt.
    changes.undo.push(() => rmSync(path));
    try {
      naming(path, () => writeFileSync(file, content));
    } finally {
      closeSync(file);
    }
    made.push(name);
  };
  const db = template === "db";
  if (db && hasProjectFile(root)) addDatabase(root, made, changes);
  make(PROJECT_FILE, renderFile("project/magic.yaml.hbs", { db }));
  make("tsconfig.json", renderFile("project/tsconfig.json.hbs", { controllers }));
  make(".gitignore", renderFile("project/gitignore.hbs", {}));
  if (db) exampleDatabase(root, made, changes);
  return made;
}

/** undefined where there is one, made by another command in this moment perhaps. */
function openNew(path: string): number | undefined {
  try {
    return openSync(path, "wx");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

const EXAMPLE = "data/main.db";
// https://www.sqlite.org/rescode.html#full
const SQLITE_FULL = 13;

// Keeps the file's comments and order; does nothing where a database of this name is configured.
function addDatabase(root: string, made: string[], { undo, settle }: Changes): void {
  let added = false;
  const path = realpathSync(join(root, PROJECT_FILE));
  const before = String(readPlainFile(path));
  const after = edited(before, (document) => {
    if (document.hasIn(["databases", "main"])) return;
    document.setIn(["databases", "main"], { url: `sqlite:${EXAMPLE}`, mode: "read" });
    added = true;
  });
  if (!added) return;
  // What undoes it needs no room on a disk that has none left.
  const [next, kept] = [`${path}.new`, `${path}.before`];
  undo.push(() => rmSync(next, { force: true }));
  rmSync(next, { force: true });
  // Secrets may stand in it: who may not read it may not do so afterwards either.
  const { mode } = statSync(path);
  naming(path, () => writeFileSync(next, after, { mode }));
  undo.push(() => rmSync(kept, { force: true }));
  copyFileSync(path, kept);
  renameSync(next, path);
  undo.push(() => renameSync(kept, path));
  settle.push(() => rmSync(kept));
  made.push(`${PROJECT_FILE} (databases.main)`);
}

function exampleDatabase(root: string, made: string[], { undo }: Changes): void {
  const path = join(root, EXAMPLE);
  const configured = readProjectFile(root).config?.databases?.["main"]?.url;
  if (existsSync(path) || configured !== `sqlite:${EXAMPLE}`) return;
  const folder = makeFolder(dirname(path));
  if (folder) undo.push(() => rmSync(folder, { recursive: true, force: true }));
  undo.push(() => rmSync(path, { force: true }));
  const database = new DatabaseSync(path);
  try {
    database.exec(
      "create table customers (id integer primary key, name text not null, city text);" +
        "insert into customers (name, city) values ('Ada', 'London'), ('Alan', 'Manchester'), ('Grace', 'New York'), ('Edsger', null);",
    );
  } catch (error) {
    throw (error as { errcode?: number }).errcode === SQLITE_FULL
      ? new MagicError("storage_full", `${path} cannot be written: the disk is full.`, { cause: error })
      : error;
  } finally {
    database.close();
  }
  made.push(EXAMPLE);
}

/** Throws usage where the path holds a backslash: Node imports nothing from below one, and no save there is told of. */
export function refuseBackslash(path: string): void {
  if (sep === "/" && path.includes("\\"))
    throw new MagicError("usage", `${path} holds a backslash: Node cannot import from there, and saves are not seen.`, {
      extra: { next: "Give the folder another name." },
    });
}
