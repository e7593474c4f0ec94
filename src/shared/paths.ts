// Where things lie: the user's state folder, the project root, the project's state folder.
import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import { leadsNowhere } from "./plain-file.ts";

export const PROJECT_FILE = "magic.yaml";
/** Where a project's controllers are, unless its magic.yaml says otherwise. */
export const CONTROLLERS_FOLDER = "controllers";

/** The user's state folder: master key, user configuration, compile cache. `MAGIC_HOME` overrides it. Throws state_unusable where there is no home. */
export function userStateFolder(env: NodeJS.ProcessEnv = process.env): string {
  return resolve(env["MAGIC_HOME"] || join(stateHome(env["XDG_STATE_HOME"]), "magic"));
}

// The XDG base directory specification passes over a path that is not absolute: the key's place must not hang on where a command runs.
function stateHome(named = ""): string {
  return isAbsolute(named) ? named : join(homeFolder(), ".local", "state");
}

// HOME may be empty, and the user one without an entry of its own, as in a container.
function homeFolder(): string {
  for (const find of [homedir, () => userInfo().homedir]) {
    try {
      const found = find();
      if (isAbsolute(found)) return found;
    } catch {
      // Without an entry both refuse.
    }
  }
  throw new MagicError("state_unusable", "This user has no home folder.", {
    extra: { next: "Set MAGIC_HOME, or HOME, to a folder of this user's own." },
  });
}

export interface Root {
  readonly path: string;
  /** False outside a project: then the path is the user's state folder. */
  readonly project: boolean;
}

/** Where the command runs. Throws not_found where that folder is gone, and usage where nothing in it could be named. */
export function currentFolder(): string {
  const folder = workingFolder();
  // What is no UTF-8 is read with U+FFFD in it: a path that leads nowhere, and from which no project would be found.
  if (folder.includes("\ufffd") && !existsSync(folder))
    throw new MagicError("usage", `The current folder's path is not valid UTF-8: ${folder}`, {
      extra: { next: "Rename the folder whose name is not." },
    });
  return folder;
}

function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    throw new MagicError("not_found", "The current folder does not exist any more.", {
      extra: { next: "Change to a folder that exists." },
    });
  }
}

/** The root that a command works on: `explicit` (--root), MAGIC_ROOT, the nearest folder with a magic.yaml, the user's state folder. */
export function findRoot(explicit?: string, env: NodeJS.ProcessEnv = process.env, cwd?: string): Root {
  const named = explicit ?? env["MAGIC_ROOT"];
  if (named && isAbsolute(named)) return { path: resolve(named), project: true };
  const here = cwd ?? currentFolder();
  if (named) return { path: resolve(here, named), project: true };
  for (let folder = resolve(here); ; folder = dirname(folder)) {
    if (hasProjectFile(folder)) return { path: folder, project: true };
    if (dirname(folder) === folder) return { path: userStateFolder(env), project: false };
  }
}

/** A link that leads nowhere counts: a project above would be another one, and no project the user's own state. */
export function hasProjectFile(folder: string): boolean {
  const path = join(folder, PROJECT_FILE);
  return existsSync(path) || leadsNowhere(path);
}

/** As people are told of it: from where they stand, as far as it lies below. */
export function shownPath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short.startsWith("..") || short === "" ? path : short;
}

/** `<root>/.magic`: database, runtime file, logs. */
export function stateFolder(root: string): string {
  return join(root, ".magic");
}

/** `folder`: the project's state folder. */
export function databaseFile(folder: string): string {
  return join(folder, "magic.db");
}

/** `folder`: the project's state folder. */
export function credentialsFile(folder: string): string {
  return join(folder, "credentials.json");
}

/** `folder`: the user's state folder. */
export function masterKeyFile(folder: string): string {
  return join(folder, "master.key");
}

/** The certificate that a daemon with `--tls` makes for itself: its command line trusts it. */
export function localCertificate(state: string): string {
  return join(state, "tls", "cert.pem");
}
