// Which folders hold a controller, where they are, and when their files were saved.
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { CONTRACT_FILES, HANDLER_FILES, isPassedOver } from "#contract/controller-files.ts";

/** A checkout, or a folder that is renamed away and back, is no removal: what serves is kept for so long. */
const GONE_MS = 400;
const GONE_STEP_MS = 20;
/** A save empties the file before it writes: an empty file is believed after so long. */
const EMPTY_MS = 100;
const EMPTY_STEP_MS = 5;
const FOREIGN = new Set(["node_modules", ".git", ".magic"]);
/** What tools write into a controller's folder. */
const MADE = new Set(["dist", "coverage"]);

/** Whether nothing in there is worth a watch. `controllers` is where their folders lie, which have any name. */
export function isUnwatched(path: string, controllers: string | null): boolean {
  const name = basename(path);
  return FOREIGN.has(name) || (MADE.has(name) && dirname(path) !== controllers);
}

/** Folders, and links to folders. */
export async function controllersIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  const paths = names.filter((name) => !isPassedOver(name)).map((name) => join(folder, name));
  const found = await Promise.all(paths.map(async (path) => ((await isController(path)) ? path : null)));
  return found.filter((path) => path !== null).sort();
}

/** One that nobody may look into may be one, and says so as a problem. */
export async function isController(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(({ code }: NodeJS.ErrnoException) => code);
  if (!Array.isArray(names)) return names !== "ENOENT" && names !== "ENOTDIR";
  return names.some((name) => (CONTRACT_FILES as readonly string[]).includes(name)) || names.some(isRoot);
}

/** Waits while it is gone: one that was there in between, and is away again, was not gone for so long. */
export async function isStill(folder: string): Promise<boolean> {
  return await comesTrue(() => isController(folder), GONE_MS, GONE_STEP_MS);
}

/** As soon as it is so; false where it is not for so long. */
async function comesTrue(isSo: () => Promise<boolean>, ms: number, stepMs: number): Promise<boolean> {
  for (let waited = 0; waited < ms; waited += stepMs) {
    if (await isSo()) return true;
    await new Promise((done) => setTimeout(done, stepMs));
  }
  return await isSo();
}

export function isRoot(name: string): boolean {
  return (CONTRACT_FILES as readonly string[]).includes(name) || (HANDLER_FILES as readonly string[]).includes(name);
}

/** Where the child of `parent` is, if it is a link. */
export async function targetOf(path: string, parent: string): Promise<string | null> {
  const [target, real] = await Promise.all([path, parent].map((one) => realpath(one).catch(() => one)));
  return path === parent || target === join(real as string, basename(path)) ? null : (target as string);
}

/** The path as the controller's folder has it, where the folder is a link. */
export function namedIn(
  { folder, target }: { readonly folder: string; readonly target: string | null },
  path: string,
): string {
  return target !== null && path.startsWith(target + sep) ? folder + path.slice(target.length) : path;
}

/** Whether anything that the last build read, or would have read, is newer than that, or gone. */
export async function changedSince(
  { folder, inputs }: { readonly folder: string; readonly inputs: readonly string[] },
  moment: number,
): Promise<boolean> {
  const roots = [...CONTRACT_FILES, ...HANDLER_FILES].map((name) => join(folder, name));
  const [there, newest] = await Promise.all([
    Promise.all([folder, ...inputs].map(changeTime)),
    Promise.all(roots.map(changeTime)),
  ]);
  // Some file systems count in their own, coarser ticks.
  return there.includes(0) || Math.max(...there, ...newest) > moment - 50;
}

/** Waits while the file is empty, as it is in the middle of a save; at most 100 ms. */
export async function untilWritten(path: string): Promise<void> {
  await comesTrue(async () => (await stat(path).catch(() => null))?.size !== 0, EMPTY_MS, EMPTY_STEP_MS);
}

/** When the save happened: the newest file's own time, unless a clock disagrees with ours. */
export async function savedTime(paths: readonly string[], seen: number): Promise<number> {
  const times = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        (one) => one.mtimeMs,
        () => 0,
      ),
    ),
  );
  const newest = Math.max(0, ...times);
  return newest > 0 && newest <= seen && seen - newest < 2_000 ? newest : seen;
}

function changeTime(path: string): Promise<number> {
  return stat(path).then(
    (one) => one.ctimeMs,
    () => 0,
  );
}
