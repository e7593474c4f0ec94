// What no watch tells of: packages, those that a build has read as well as those that it did not find, and files elsewhere that no build has
// named as its own. They are looked at until one of them is there, or is another one.
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { SourceProblem } from "#contract/wire/controllers.ts";
import { packageOf } from "../bundle/policy.ts";

const EVERY_MS = 500;
/** Of packages. Whoever bundles more sees another version of one, but not what was changed by hand in a file of it. */
const MAX_LOOKED_AT = 500;
const ENDINGS = ["", ".ts", ".tsx", ".mts", ".js", ".jsx", ".json", "/index.ts", "/index.tsx", "/index.js"];

/** The files one of which may be what a problem says is not there; `root` is what problems name their files from. */
export function missingFiles(problems: readonly SourceProblem[], folder: string, root: string): string[] {
  const found = problems.flatMap(({ file, message }) => {
    const [, name] = /^Could not resolve "([^"]+)"/.exec(message) ?? [];
    if (name === undefined) return [];
    if (!/^\.{0,2}\//.test(name)) return packageFiles(folder, name);
    const path = resolve(dirname(resolve(root, file)), name);
    // What TypeScript's own habit calls .js may be a .ts.
    return [...ENDINGS.map((ending) => path + ending), path.replace(/\.(m|c)?js(x?)$/, ".$1ts$2")];
  });
  return [...new Set(found)];
}

/** What a build has read of packages, and where each says its version: a link there may lead elsewhere after an installation. */
export function installedFiles(inputs: readonly string[], folder: string): string[] {
  const files = inputs.filter((path) => packageOf(path) !== undefined);
  const names = new Set(files.map((path) => packageOf(path) as string));
  const manifests = [...names].flatMap((name) => packageFiles(folder, name).filter((path) => existsSync(path)));
  return [...manifests, ...files.slice(0, MAX_LOOKED_AT)];
}

function packageFiles(folder: string, name: string): string[] {
  const [, found] = /^((?:@[^/]+\/)?[^./@][^/]*)/.exec(name) ?? [];
  return found === undefined ? [] : above(folder).map((at) => join(at, "node_modules", found, "package.json"));
}

/**
 * Calls `act` once when one of the files appears, changes, or has done so since the build began; the function returned gives up. `known`
 * keeps the times that `act` was called for: those of a network's file system may lie ahead of this clock, and after every build's beginning.
 */
export function whenThere(
  files: readonly string[],
  buildBegan: number,
  known: Map<string, number>,
  act: () => void,
): () => void {
  const times = () => files.map((file) => statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? 0);
  const before = times().join();
  const timer = setInterval(() => {
    const now = times();
    if (now.join() === before && !now.some((time, at) => time > buildBegan && time !== known.get(files[at] ?? "")))
      return;
    clearInterval(timer);
    for (const [at, file] of files.entries()) known.set(file, now[at] ?? 0);
    act();
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** Files that say how imports are resolved: of the folder and of every one above it, up to the root. */
export function resolutionFiles(folder: string, root: string): string[] {
  const folders = above(folder);
  const end = folders.indexOf(root);
  return (end === -1 ? [folder] : folders.slice(0, end + 1)).flatMap((at) =>
    RESOLUTION_FILES.map((name) => join(at, name)),
  );
}

const RESOLUTION_FILES = ["tsconfig.json", "package.json"];

function above(folder: string): string[] {
  return dirname(folder) === folder ? [folder] : [folder, ...above(dirname(folder))];
}
