// esbuild works in one process for everybody, its service. What it was asked for it does to the end: one that looks through a huge folder for
// what a path with variable parts may mean heeds neither cancel() nor dispose(). So that process is ended; others' builds ask the next one.
import { availableParallelism } from "node:os";
import { stop } from "esbuild";

/** What was asked for was not answered: somebody ended the process. */
export class ServiceEnded extends Error {}
export class BuildTooLong extends Error {}

export interface Patience {
  /** Milliseconds of the build's own: where more run than there are processors, each has a share of them. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal | undefined;
}

interface Request {
  spentMs: number;
  readonly withinMs: number;
  readonly fail: (why: Error) => void;
}

const TICK_MS = 100;
const PROCESSORS = availableParallelism();

const underWay = new Set<Request>();
let clock: NodeJS.Timeout | undefined;
let service = 0;

/** The number of the process that is asked now. */
export function currentService(): number {
  return service;
}

/** Throws what esbuild does, ServiceEnded, BuildTooLong, or the signal's reason; the work of the latter two is not left running. */
export async function ask<T>(what: () => Promise<T>, { withinMs = Infinity, signal }: Patience = {}): Promise<T> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const request = { spentMs: 0, withinMs, fail: reject };
  const asked = service;
  const leave = (): void => {
    reject(signal?.reason);
    endService(asked);
  };
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
}

/** Only while it is still the one that is asked. Whoever waits for it is told so: by esbuild they would never be. */
export function endService(number: number): void {
  if (number !== service) return;
  service++;
  void stop();
  for (const { fail } of underWay) fail(new ServiceEnded());
}
