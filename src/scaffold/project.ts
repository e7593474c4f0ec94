// The project around a new controller: magic.yaml, tsconfig.json, .gitignore, and what the db template needs.

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseDocument } from "yaml";
import { MagicError } from "#contract/errors.ts";
import { readProject } from "#contract/project-check.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { PROJECT_FILE } from "#shared/paths.ts";
import { renderFile, type Template } from "./render.ts";

/** Undoes what was made, in reverse order. */
export type Undo = () => void;

/** The folder of a project's controllers, as magic.yaml says it. Throws config_invalid for a file that is not valid. */
export function controllersFolder(root: string): string {
  const path = join(root, PROJECT_FILE);
  if (!existsSync(path)) return "controllers";
  const { config, problems } = readProject(readFileSync(path), PROJECT_FILE);
  if (!config)
    throw new MagicError("config_invalid", `${path} is not valid: \`magic validate\` lists every problem.`, {
      extra: { problems },
    });
  return config.controllers ?? "controllers";
}

/** Makes the project's files that are missing; answers their names. What it made is pushed to `undo`. */
export function ensureProject(root: string, controllers: string, template: Template, undo: Undo[]): string[] {
  const made: string[] = [];
  const make = (name: string, content: string) => {
    const path = join(root, name);
    if (existsSync(path)) return;
    writeFileSync(path, content, { flag: "wx" });
    undo.push(() => rmSync(path));
    made.push(name);
  };
  const db = template === "db";
  if (db && existsSync(join(root, PROJECT_FILE))) addDatabase(root, made, undo);
  make(PROJECT_FILE, renderFile("project/magic.yaml.hbs", { db }));
  make("tsconfig.json", renderFile("project/tsconfig.json.hbs", { controllers }));
  make(".gitignore", renderFile("project/gitignore.hbs", {}));
  if (db) exampleDatabase(root, made, undo);
  return made;
}

const EXAMPLE = "data/main.db";

// Keeps the file's comments and order; does nothing where a database of this name is configured.
function addDatabase(root: string, made: string[], undo: Undo[]): void {
  const path = join(root, PROJECT_FILE);
  const before = readFileSync(path, "utf8");
  const document = parseDocument(before);
  if (document.hasIn(["databases", "main"])) return;
  document.setIn(["databases", "main"], { url: `sqlite:${EXAMPLE}`, mode: "read" });
  const replace = (text: string) => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  replace(document.toString({ lineWidth: 0 }));
  undo.push(() => replace(before));
  made.push(`${PROJECT_FILE} (databases.main)`);
}

function exampleDatabase(root: string, made: string[], undo: Undo[]): void {
  const path = join(root, EXAMPLE);
  const configured = readProject(readFileSync(join(root, PROJECT_FILE)), PROJECT_FILE).config?.databases?.["main"]?.url;
  if (existsSync(path) || configured !== `sqlite:${EXAMPLE}`) return;
  makeFolder(dirname(path));
  const database = new DatabaseSync(path);
  undo.push(() => rmSync(path, { force: true }));
  database.exec(
    "create table customers (id integer primary key, name text not null, city text);" +
      "insert into customers (name, city) values ('Ada', 'London'), ('Alan', 'Manchester'), ('Grace', 'New York'), ('Edsger', null);",
  );
  database.close();
  made.push(EXAMPLE);
}
