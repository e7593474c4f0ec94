// Packages that a build did not find: nothing watches node_modules, so their folders are looked at until they are installed.
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SourceProblem } from "#contract/wire/controllers.ts";

const EVERY_MS = 500;

/** The npm packages that the problems say are not there. */
export function missingPackages(problems: readonly SourceProblem[]): string[] {
  const named = problems.map(({ message }) => /^Could not resolve "((?:@[^/"]+\/)?[^./"@][^/"]*)/.exec(message)?.[1]);
  return [...new Set(named.filter((name) => name !== undefined))];
}

/** Calls `act` once when a package appears or changes where a module of `folder` would find it; the function returned gives up. */
export function whenInstalled(folder: string, packages: readonly string[], act: () => void): () => void {
  const files = packages.flatMap((name) => above(folder).map((at) => join(at, "node_modules", name, "package.json")));
  const now = () => files.map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0).join();
  const before = now();
  const timer = setInterval(() => {
    if (now() === before) return;
    clearInterval(timer);
    act();
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}

function above(folder: string): string[] {
  return dirname(folder) === folder ? [folder] : [folder, ...above(dirname(folder))];
}
