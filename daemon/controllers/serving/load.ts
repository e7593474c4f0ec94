// Loads a controller's module into a cell: in its time, and unless a newer version overtakes it.
import { MagicError } from "#contract/errors.ts";
import { onAbort } from "#shared/abort.ts";
import { bundleName, type StackMapper } from "../bundle/stack.ts";
import { type Cell, CellGone } from "../cell/cell.ts";
import type { LogMessage } from "../cell/frames.ts";
import type { Artifact } from "../runtime.ts";
import { cellFailure } from "./failures.ts";

/** A cell may not start faster than the machine allows; beyond this it is given up. */
export const LOAD_WITHIN_MS = 15_000;

export interface Loading {
  readonly artifact: Artifact;
  readonly memoryMb: number;
  readonly stacks: StackMapper;
  /** Milliseconds that the module may take. */
  readonly withinMs: number;
  /** The cell died under the module. */
  onGone(why: string): void;
  /** A line of the module's, while it loads or between its calls. */
  onLog(line: LogMessage): void;
}

/** Throws `build_failed` where the module does not load, `load_timeout`, or what became of the cell, which has ended then. */
export async function loadCell(cell: Cell, loading: Loading, overtaken?: AbortSignal): Promise<void> {
  const { name: controller, version } = loading.artifact.contract;
  // It may have been while the cell came to be.
  const forget = onAbort(overtaken, () => cell.kill("killed", "a newer version takes its place"));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    cell.kill("killed", "the controller's module did not load in time");
  }, loading.withinMs);
  const memoryBytes = loading.memoryMb * 2 ** 20;
  const options = { controller, version, filename: bundleName(controller), memoryBytes };
  try {
    await cell.load(options, loading.artifact.code, loading.onLog);
  } catch (error) {
    cell.kill("killed", "the module did not load");
    if (error instanceof CellGone) loading.onGone(error.message);
    throw late ? loadTimeout(loading) : loadFailure(error, loading);
  } finally {
    clearTimeout(timer);
    forget();
  }
}

function loadFailure(error: unknown, { artifact, memoryMb, stacks }: Loading): Error {
  if (error instanceof CellGone) return cellFailure(error, memoryMb);
  if ((error as { guest?: boolean }).guest !== true) return error as Error;
  const { message, stack } = error as Error;
  const { name, version } = artifact.contract;
  return new MagicError("build_failed", `${name}@${version} does not load: ${message}\n${stacks.map(stack ?? "")}`);
}

function loadTimeout({ artifact, withinMs }: Loading): MagicError {
  const { name, version } = artifact.contract;
  const detail = `the module of ${name}@${version} did not finish loading within ${withinMs} ms: what runs at import, before any call, must end`;
  return new MagicError("load_timeout", detail);
}
