// Processes of cells are started by a thread of their own: whoever starts one waits until the kernel has loaded the program, and finds it
// on its own processor then. For the daemon's thread that is 1.5 to 5 ms each time a cell is replaced, and 0.5 where another one does it.
import { Worker } from "node:worker_threads";
import type { Processes, Started } from "./lockdown/process.ts";
import type { Native } from "./native.ts";
import { newcomer } from "./standing.ts";

export interface StartOrder {
  readonly id: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Descriptors belong to the whole process, whichever thread opened them. */
export interface StartedCell extends Started {
  /** Of newcomer() in standing.ts. */
  readonly session: number | null;
}

/** `failed`: why there is no process. */
export type StartReport =
  | { readonly id: number; readonly started: StartedCell }
  | { readonly id: number; readonly failed: string };

/** The first ones of a daemon, which hardly has a caller to keep waiting: the thread takes 10 MB, and time from what is started meanwhile. */
const HERE_FIRST = 4;

let startedHere = 0;
let worker: Worker | null = null;
let online = false;
let lastId = 0;
const waiting = new Map<number, PromiseWithResolvers<StartedCell>>();

/** Starts Node with these arguments and nothing but this environment. Rejects where there is no process to be had. */
export async function startProcess(
  libc: Native,
  processes: Processes,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<StartedCell> {
  if (startedHere >= HERE_FIRST) worker ??= openThread();
  if (!worker || !online) {
    startedHere++;
    return startHere(libc, processes, args, env);
  }
  const id = ++lastId;
  const one = Promise.withResolvers<StartedCell>();
  waiting.set(id, one);
  worker.ref();
  worker.postMessage({ id, args, env } satisfies StartOrder);
  return await one.promise;
}

/** By the thread that calls it. */
export function startHere(
  libc: Native,
  processes: Processes,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): StartedCell {
  const started = processes.start(process.execPath, args, env);
  return { ...started, session: newcomer(started.pid, libc) };
}

/** It lives as long as the daemon: the kernel ends a cell with the thread that started it. */
function openThread(): Worker {
  const entry = new URL(import.meta.resolve("#entry/cell-starter"));
  // Descriptors that it opened are the daemon's to close.
  const thread = new Worker(entry, { name: "cells", trackUnmanagedFds: false });
  // Nothing under way keeps no process alive.
  thread.unref();
  let failure: unknown = new Error("the thread that starts cells has ended");
  thread.on("online", () => {
    online = true;
  });
  thread.on("message", (report: StartReport) => {
    const one = waiting.get(report.id);
    waiting.delete(report.id);
    if ("failed" in report) one?.reject(new Error(report.failed));
    else one?.resolve(report.started);
    if (waiting.size === 0) thread.unref();
  });
  thread.on("error", (error) => {
    failure = error;
  });
  thread.on("exit", () => {
    worker = null;
    online = false;
    for (const one of waiting.values()) one.reject(failure);
    waiting.clear();
  });
  return thread;
}
