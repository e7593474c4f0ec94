// Writes settings: the command line's own into the user's configuration, all others into the project's magic.yaml.
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, isMap, parse } from "yaml";
import { MagicError } from "#contract/errors.ts";
import { readProject } from "#contract/project-check.ts";
import { edited } from "#scaffold/edit.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { hasProjectFile, PROJECT_FILE, userStateFolder } from "#shared/paths.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { userConfigPath } from "#shared/user-config.ts";
import { naming } from "#shared/write-error.ts";
import { withDraft } from "./draft.ts";
import { pathOf, userSettings } from "./settings.ts";

export interface Change {
  readonly key: string;
  readonly value: unknown;
  /** The file that was written. */
  readonly file: string;
}

/** Sets a key, or removes it where `text` is undefined. Throws validation_failed and config_invalid; then nothing was written. */
export async function changeSetting(
  key: string,
  text: string | undefined,
  root: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Change> {
  return Object.hasOwn(userSettings, key) ? changeUser(key, text, env) : changeProject(key, text, root);
}

async function changeUser(key: string, text: string | undefined, env: NodeJS.ProcessEnv): Promise<Change> {
  const values = userSettings[key]?.values;
  if (text !== undefined && values && !values.includes(text))
    throw new MagicError("validation_failed", `${key} cannot be ${JSON.stringify(text)}.`, {
      extra: { next: `Use one of: ${values.join(", ")}.` },
    });
  if (key === "url" && text !== undefined && !/^https?:$/.test(URL.parse(text)?.protocol ?? ""))
    throw new MagicError("validation_failed", `${JSON.stringify(text)} is not the URL of a daemon.`, {
      extra: { next: "Use one such as https://magic.example.com." },
    });
  const folder = userStateFolder(env);
  // A package below it asks for the user's home when it is loaded, and there may be none; it is not used here.
  process.env["HOME"] ??= folder;
  const { default: Conf } = await import("conf");
  try {
    makeFolder(folder, 0o700);
    await withDraft(userConfigPath(env), 0o600, (draft) => {
      const config = new Conf({ projectName: "magic", cwd: folder, configName: "config", configFileMode: 0o600 });
      if (text === undefined) config.delete(key);
      else config.set(key, text);
      rmSync(draft);
    });
  } catch (error) {
    // Nobody named a path that there is not: the folder itself, or the file in it, is at fault.
    const { code = "", name } = error as NodeJS.ErrnoException;
    if (name !== "SyntaxError" && !["ENOENT", "ENOTDIR", "EEXIST", "ELOOP"].includes(code)) throw error;
    throw new MagicError("state_unusable", `The state folder ${folder} cannot be used: ${(error as Error).message}.`, {
      cause: error,
    });
  }
  return { key, value: text ?? null, file: userConfigPath(env) };
}

async function changeProject(key: string, text: string | undefined, root: string | undefined): Promise<Change> {
  if (root === undefined || !hasProjectFile(root))
    throw new MagicError("not_found", `${key} is a setting of magic.yaml, and there is none here or above.`, {
      extra: { next: `Settings of your own are: ${Object.keys(userSettings).join(", ")}.` },
    });
  const file = join(root, PROJECT_FILE);
  // A link that leads nowhere is told of as that.
  readPlainFile(file);
  const itself = realpathSync(file);
  const value = text === undefined ? undefined : parsed(key, text);
  // Secrets may stand in it: who may not read it may not do so afterwards either.
  await withDraft(itself, statSync(itself).mode, (draft) => {
    const changed = changedText(file, key, value);
    naming(itself, () => writeFileSync(draft, changed));
    renameSync(draft, itself);
  });
  return { key, value: value ?? null, file };
}

// Keeps the file's comments and order; what would not be valid afterwards is refused.
function changedText(file: string, key: string, value: unknown): string {
  const path = pathOf(key);
  const changed = edited(String(readPlainFile(file)), (document) => {
    if (document.errors.length > 0)
      throw new MagicError("config_invalid", `${file} is not valid: \`magic validate\` lists every problem.`);
    if (value === undefined) remove(document, path);
    else put(document, path, value);
  });
  const { problems } = readProject(changed, PROJECT_FILE);
  if (problems.length > 0)
    throw new MagicError("config_invalid", `${file} would not be valid; nothing was written.`, {
      problems: problems.map(({ pointer, code, message, fix }) => ({ pointer, code, detail: `${message} ${fix}` })),
    });
  return changed;
}

function parsed(key: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const [first] = (error as Error).message.split("\n");
    throw new MagicError("validation_failed", `The value of ${key} cannot be read as YAML: ${first}`);
  }
}

// With what would be left empty around it: `config set` made that too.
function remove(document: Document, path: readonly string[]): void {
  if (!document.hasIn(path)) return;
  document.deleteIn(path);
  const above = path.slice(0, -1);
  const part = above.length > 0 && document.getIn(above);
  if (isMap(part) && part.items.length === 0) remove(document, above);
}

function put(document: Document, path: readonly string[], value: unknown): void {
  try {
    document.setIn(path, value);
  } catch {
    throw new MagicError("validation_failed", `${path.join(".")} stands below a value that has no keys.`);
  }
}
