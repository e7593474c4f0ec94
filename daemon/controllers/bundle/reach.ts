// Which files a bundle may carry as data: text, bytes, JSON. To import one is to read it on the machine that builds, and the handler sees what
// is in it: what is neither the controller's, nor plainly the project's, nor a package's is refused. Code may come from anywhere: it has to be
// some, and a monorepo's lies where it likes.
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, posix, relative, resolve, sep } from "node:path";
import type { Message, Metafile, Plugin } from "esbuild";
import { PROJECT_FILE } from "#shared/paths.ts";
import { packageOf } from "./policy.ts";

const CODE = /\.[cm]?[jt]sx?$/;

/** A device or a pipe could be read without end. What may be code, by the last letter, is not asked for: it would cost a build time. */
export const regularFilesPlugin: Plugin = {
  name: "magic-regular-files",
  setup(build) {
    build.onLoad({ filter: /[^sx]$/ }, ({ path }) =>
      statSync(path, { throwIfNoEntry: false })?.isFile() === false
        ? { errors: [{ text: `${path} is not a regular file` }] }
        : undefined,
    );
  },
};

/** An error for each import of data from elsewhere. `root`: the project's folder. */
export function strayImports({ inputs }: Metafile, folder: string, root: string): Message[] {
  const places = { folder: realPath(folder) ?? folder, root: realPath(root) ?? root };
  return Object.entries(inputs).flatMap(([name, input]) => {
    // Most are plain code, and to look at each file would cost a build time.
    if (input.with === undefined && CODE.test(name) && !/[?#]/.test(name)) return [];
    const file = fileOf(folder, name);
    if (file === undefined || isInside(places.folder, file) || packageOf(file) !== undefined) return [];
    if (input.with === undefined && CODE.test(file)) return [];
    const text = `a bundle takes no data from ${file}: it is not the controller's`;
    const imports = importsOf(name, inputs);
    if (imports.length === 0) return [nowhere(text)];
    return imports.flatMap(({ importer, original }) => {
      const path = fileOf(folder, importer) ?? folder;
      return mayReach(path, file, places) ? [] : [messageAt({ file: importer, ...placeOf(original, path) }, text)];
    });
  });
}

/** Who imports it, and how that is written there: a path with variable parts lets in what lies below its fixed beginning. */
function importsOf(name: string, inputs: Metafile["inputs"]): { importer: string; original: string }[] {
  return Object.entries(inputs).flatMap(([importer, { imports }]) =>
    imports
      .filter(({ path }) => path === name || (path.includes("*") && name.startsWith(beginningOf(importer, path))))
      .map(({ original = "" }) => ({ importer, original })),
  );
}

function beginningOf(importer: string, path: string): string {
  const [beginning = ""] = posix.join(posix.dirname(importer), path).split("*");
  return beginning;
}

/** Of a file that is neither the controller's nor a package's. */
function mayReach(importer: string, file: string, { folder, root }: { folder: string; root: string }): boolean {
  if (packageOf(importer) !== undefined) return false;
  // The project's own state and secrets lie there too.
  if (isInside(root, file)) return !/(^|[/\\])\./.test(relative(root, file)) && file !== join(root, PROJECT_FILE);
  return !isInside(folder, importer) && !isInside(root, importer) && isInside(packageFolder(importer), file);
}

/** Of a package that is linked into the project: the nearest folder above with a package.json. */
function packageFolder(file: string): string {
  for (let at = dirname(file); dirname(at) !== at; at = dirname(at))
    if (existsSync(join(at, "package.json"))) return at;
  return dirname(file);
}

function isInside(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}

/** Undefined for what is no file, or not any more: esbuild has names for what it made itself, and folders are renamed while they are built. */
function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** The file behind esbuild's name of an input, which the attributes and the query that it was imported with follow. */
export function fileOf(folder: string, name: string): string | undefined {
  let path = name.replace(/ with \{ type: '[^']*' \}$/, "");
  while (/[?#]/.test(path) && !existsSync(resolve(folder, path))) path = path.replace(/[?#][^?#]*$/, "");
  return realPath(resolve(folder, path));
}

/** Where the importer names it. */
function placeOf(original: string, importer: string): { line: number; column: number } {
  const source = statSync(importer, { throwIfNoEntry: false })?.isFile() ? readFileSync(importer, "utf8") : "";
  const { line, column } = placeAt(source, source.indexOf(original));
  // Of its quote.
  return { line, column: Math.max(0, column - 1) };
}

/** Line from 1, column from 0; the beginning for -1. */
export function placeAt(source: string, index: number): { line: number; column: number } {
  const before = source.slice(0, Math.max(0, index)).split("\n");
  return { line: before.length, column: before.at(-1)?.length ?? 0 };
}

export function messageAt(place: { file: string; line: number; column: number }, text: string): Message {
  const location = { ...place, namespace: "", length: 0, lineText: "", suggestion: "" };
  return { ...nowhere(text), location };
}

function nowhere(text: string): Message {
  return { id: "", pluginName: "", text, location: null, notes: [], detail: undefined };
}
