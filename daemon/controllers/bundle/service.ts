// esbuild works in one process for everybody, its service. What it was asked for it does to the end: one that looks through a huge folder for
// what a path with variable parts may mean heeds neither cancel() nor dispose(). So that process is ended; others' builds ask the next one.
import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { stop } from "esbuild";

/** What was asked for was not answered: somebody ended the process. */
export class ServiceEnded extends Error {}
/** It took too much memory for several builds: which of them is to blame shows when each is asked for alone. */
export class ServiceFull extends ServiceEnded {}
export class BuildTooLong extends Error {}
export class BuildTooLarge extends Error {}

export interface Patience {
  /** Milliseconds of the build's own: where more run than there are processors, each has a share of them. */
  readonly withinMs?: number;
  /** That the process may grow by while it is under way. */
  readonly mostBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

interface Request {
  spentMs: number;
  readonly withinMs: number;
  readonly mostBytes: number;
  readonly fail: (why: Error) => void;
}

const TICK_MS = 100;
/**
 * More than a build of the longest bundle takes. A source, or the source map that it names, may be read without end (/dev/zero), a gigabyte a
 * second; whoever imports all of a cloud's SDK has two.
 */
const MOST_GROWN_BYTES = 4 * 1024 ** 3;
const PAGE = 4096;
const PROCESSORS = availableParallelism();

const underWay = new Set<Request>();
let clock: NodeJS.Timeout | undefined;
let service = 0;
/** esbuild's process, which esbuild itself tells nobody of. */
let child: ChildProcess | null = null;
/** Its memory when the first of those under way was asked for. */
let bytesBefore = 0;

subscribe("child_process", (message) => {
  const { process: started } = message as { process: ChildProcess };
  // By then it has been given its program.
  queueMicrotask(() => {
    if (started.spawnargs?.some((one) => one.startsWith("--service="))) child = started;
  });
});

/** The number of the process that is asked now. */
export function currentService(): number {
  return service;
}

/** Throws what esbuild does, ServiceEnded, BuildTooLong, BuildTooLarge, or the signal's reason; the work of the latter three is not left running. */
export async function ask<T>(
  what: () => Promise<T>,
  { withinMs = Infinity, mostBytes = MOST_GROWN_BYTES, signal }: Patience = {},
): Promise<T> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const request = { spentMs: 0, withinMs, mostBytes, fail: reject };
  const asked = service;
  const leave = (): void => {
    reject(signal?.reason);
    endService(asked);
  };
  if (underWay.size === 0) bytesBefore = bytesNow();
  underWay.add(request);
  clock ??= setInterval(tick, TICK_MS).unref();
  signal?.addEventListener("abort", leave);
  what().then(resolve, reject);
  try {
    return await promise;
  } finally {
    signal?.removeEventListener("abort", leave);
    underWay.delete(request);
    if (underWay.size === 0) {
      clearInterval(clock);
      clock = undefined;
    }
  }
}

function tick(): void {
  const share = TICK_MS * Math.min(1, PROCESSORS / underWay.size);
  for (const request of underWay) request.spentMs += share;
  const late = [...underWay].filter(({ spentMs, withinMs }) => spentMs > withinMs);
  for (const { fail } of late) fail(new BuildTooLong());
  if (late.length > 0) endService(service);
  const grown = bytesNow() - bytesBefore;
  if (![...underWay].some(({ mostBytes }) => grown > mostBytes)) return;
  const why = underWay.size === 1 ? BuildTooLarge : ServiceFull;
  for (const { fail } of underWay) fail(new why());
  endService(service);
}

/** What it holds of the machine's memory; 0 where nothing tells. */
function bytesNow(): number {
  try {
    return Number(readFileSync(`/proc/${child?.pid}/statm`, "latin1").split(" ")[1]) * PAGE;
  } catch {
    return 0;
  }
}

/** Only while it is still the one that is asked. Whoever waits for it is told so: by esbuild they would never be. */
export function endService(number: number): void {
  if (number !== service) return;
  service++;
  bytesBefore = 0;
  void stop();
  for (const { fail } of underWay) fail(new ServiceEnded());
}
