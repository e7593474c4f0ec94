// Writes settings: the command line's own into the user's configuration, all others into the project's magic.yaml.

import { existsSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Conf from "conf";
import { parse, parseDocument } from "yaml";
import { MagicError } from "#contract/errors.ts";
import { readProject } from "#contract/project-check.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { PROJECT_FILE, userStateFolder } from "#shared/paths.ts";
import { userConfigPath } from "#shared/user-config.ts";
import { userSettings } from "./settings.ts";

export interface Change {
  readonly key: string;
  readonly value: unknown;
  /** The file that was written. */
  readonly file: string;
}

/** Sets a key, or removes it where `text` is undefined. Throws validation_failed and config_invalid; then nothing was written. */
export function changeSetting(
  key: string,
  text: string | undefined,
  root: string | undefined,
  env: NodeJS.ProcessEnv,
): Change {
  return Object.hasOwn(userSettings, key) ? changeUser(key, text, env) : changeProject(key, text, root);
}

function changeUser(key: string, text: string | undefined, env: NodeJS.ProcessEnv): Change {
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
  try {
    makeFolder(folder, 0o700);
    const config = new Conf({ projectName: "magic", cwd: folder, configName: "config", configFileMode: 0o600 });
    if (text === undefined) config.delete(key);
    else config.set(key, text);
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

// Keeps the file's comments and order; what would not be valid afterwards is refused.
function changeProject(key: string, text: string | undefined, root: string | undefined): Change {
  if (root === undefined || !existsSync(join(root, PROJECT_FILE)))
    throw new MagicError("not_found", `${key} is a setting of magic.yaml, and there is none here or above.`, {
      extra: { next: `Settings of your own are: ${Object.keys(userSettings).join(", ")}.` },
    });
  const file = join(root, PROJECT_FILE);
  const document = parseDocument(readFileSync(file, "utf8"));
  const path = key.split(".");
  const value: unknown = text === undefined ? null : parse(text);
  if (text === undefined) document.deleteIn(path);
  else document.setIn(path, value);
  const changed = document.toString({ lineWidth: 0 });
  const { problems } = readProject(changed, PROJECT_FILE);
  if (problems.length > 0)
    throw new MagicError("config_invalid", `${file} would not be valid; nothing was written.`, {
      problems: problems.map(({ pointer, code, message, fix }) => ({ pointer, code, detail: `${message} ${fix}` })),
    });
  const itself = realpathSync(file);
  // Secrets may stand in it: who may not read it may not do so afterwards either.
  try {
    writeFileSync(`${itself}.new`, changed, { mode: statSync(itself).mode });
    renameSync(`${itself}.new`, itself);
  } catch (error) {
    rmSync(`${itself}.new`, { force: true });
    throw error;
  }
  return { key, value, file };
}
