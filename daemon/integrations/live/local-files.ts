// Files as the ends of syncs. The person at this machine may name any; a credential of the API only those below the project's `data`
// folder: else a key for syncs could read and replace whatever the daemon's user can, the daemon's own database among it.
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { connectorOf } from "../connectors/open.ts";
import { readServerUrl } from "../engine/server-url.ts";

const certificates = ["sslcert", "sslkey", "sslrootcert"];

/** True for callers whose connections stay below the data folder. */
export function isBounded({ type }: Pick<Principal, "type">): boolean {
  return type !== "local" && type !== "admin";
}

/** The file that a URL or path means, relative ones below the project's root; null: it is no file. */
export function fileOf(url: string, root: string): string | null {
  const kind = kindOf(url);
  return kind === null || kind.kind === "http" || kind.kind === "postgres" || kind.kind === "mysql"
    ? null
    : resolve(root, kind.path);
}

/** @throws MagicError `egress_blocked` for a file outside `<root>/data`, symbolic links followed; those that a URL makes its driver read too. */
export function checkBounded(url: string, root: string): void {
  const file = fileOf(url, root);
  const read =
    file === null ? certificates.flatMap((name) => readServerUrl(url)?.searchParams.getAll(name) ?? []) : [file];
  for (const path of read) if (path) checkPlace(resolve(root, path), root);
}

/** Makes what is missing of the folder that a file is written into, where that is below the project's `data` folder. */
export function makeDataFolder(url: string, root: string): void {
  const file = fileOf(url, root);
  if (file === null || !isInData(file, root)) return;
  try {
    makeFolder(dirname(file));
  } catch {
    // Whoever writes the file says what stands in the way.
  }
}

function isInData(file: string, root: string): boolean {
  const place = relative(real(join(root, "data")), real(file));
  return place !== "" && !place.startsWith("..") && !isAbsolute(place);
}

function checkPlace(file: string, root: string): void {
  if (isInData(file, root)) return;
  throw new MagicError(
    "egress_blocked",
    `${file} is not below the project's data folder: a connection to another file is made with the command line on the daemon's machine (magic connection create --live).`,
  );
}

function kindOf(url: string): ReturnType<typeof connectorOf> | null {
  try {
    return connectorOf(url);
  } catch {
    // No connector's: the run or the check will say so.
    return null;
  }
}

// Where the path really leads, as far as it is there already.
function real(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const parent = dirname(path);
  return parent === path ? path : join(real(parent), basename(path));
}
