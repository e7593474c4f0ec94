// A folder that a development session watches, and what became of it so far.
import { sep } from "node:path";
import { type ControllerSource, openSource } from "../source.ts";
import { isRoot } from "./folders.ts";
import { resolutionFiles } from "./missing.ts";

export interface Watched {
  readonly folder: string;
  /** Where the folder is, if it is a link. */
  target: string | null;
  readonly source: ControllerSource;
  /** What serves; null while nothing good was seen. */
  live: { name: string; version: string; digest: string } | null;
  /** The name that it serves under or is about to. */
  claims: string | null;
  /** The name that another one holds. */
  waitsFor: string | null;
  invalid: boolean;
  /** The problems that were told last, of saves that came one upon the other. */
  told: string;
  dirty: boolean;
  running: Promise<void> | null;
  changed: Set<string>;
  savedAt: number;
  inputs: readonly string[];
  /** By which imports are resolved, inside the folder and above it; most of them do not exist. */
  readonly resolution: readonly string[];
  /** Gives up waiting for what the last build missed. */
  stopWaiting: () => void;
  /** When what a build missed was last found to have changed, by file. */
  readonly foundAt: Map<string, number>;
  /** Tells a build, or a module that is loading, that there is a newer one, or that nobody waits for it. */
  overtake: () => void;
}

export function newlyWatched(folder: string, root: string, buildWithinMs: number | undefined): Watched {
  return {
    folder,
    target: null,
    source: openSource(folder, root, buildWithinMs),
    live: null,
    claims: null,
    waitsFor: null,
    invalid: false,
    told: "",
    dirty: false,
    running: null,
    changed: new Set(),
    savedAt: 0,
    inputs: [],
    resolution: resolutionFiles(folder, root),
    stopWaiting: () => {},
    foundAt: new Map(),
    overtake: () => {},
  };
}

/** Whether a save of `path` may change what serves. */
export function concerns(one: Watched, path: string): boolean {
  if (path === one.folder) return true;
  if (!path.startsWith(one.folder + sep)) return one.inputs.includes(path) || one.resolution.includes(path);
  const inside = path.slice(one.folder.length + 1);
  // A test or a readme changes nothing that serves; a file that may be imported soon does.
  return one.inputs.includes(path) || isRoot(inside) || /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx|json)$/.test(inside);
}
