// Threads that read JSON and check it against a contract's schema, where that would hold up the daemon's own.
import { Worker } from "node:worker_threads";
import type { FieldProblem } from "#contract/errors.ts";
import { startBehind } from "../cell/standing.ts";
import type { Schema } from "../versions/schema.ts";

export interface CheckJob {
  readonly schema: Schema;
  /** JSON text; bytes must be UTF-8. */
  readonly json: Uint8Array | string;
}

/** `broken`: it is no JSON text. */
export interface Verdict {
  readonly broken: boolean;
  readonly problems: readonly FieldProblem[];
}

/** One after the other; those of each owner in their order, owners by turns: one that sends many holds itself up. Rejects where the thread ends. */
export type CheckThread = (json: CheckJob["json"], schema: Schema, owner: object) => Promise<Verdict>;

interface Waiting {
  readonly json: CheckJob["json"];
  readonly schema: Schema;
  readonly verdict: PromiseWithResolvers<Verdict>;
}

/** The thread is started with its first job. */
export function checkThread(name: string): CheckThread {
  /** By owner, the one whose turn is next first. */
  const waiting = new Map<object, Waiting[]>();
  let under: Waiting | null = null;
  let worker: Worker | null = null;

  function start(): Worker {
    const entry = new URL(import.meta.resolve("#entry/check-worker"));
    const thread = startBehind(() => new Worker(entry, { name }));
    let failure: unknown = new Error(`the thread ${name}, which checks JSON, has ended`);
    thread.on("message", (verdict: Verdict) => {
      under?.verdict.resolve(verdict);
      under = null;
      next();
    });
    thread.on("error", (error) => {
      failure = error;
    });
    thread.on("exit", () => {
      worker = null;
      under?.verdict.reject(failure);
      under = null;
      next();
    });
    return thread;
  }

  function next(): void {
    const [turn] = waiting;
    // Nothing under way keeps no process alive.
    if (!turn) return void worker?.unref();
    const [owner, jobs] = turn;
    waiting.delete(owner);
    under = jobs.shift() as Waiting;
    if (jobs.length > 0) waiting.set(owner, jobs);
    try {
      worker ??= start();
      worker.ref();
      worker.postMessage({ schema: under.schema, json: under.json } satisfies CheckJob);
    } catch (error) {
      // No thread, or no memory for a copy: the one who asked is told, the next may fare better.
      under.verdict.reject(error);
      under = null;
      next();
    }
  }

  return (json, schema, owner) => {
    const verdict = Promise.withResolvers<Verdict>();
    const jobs = waiting.get(owner) ?? [];
    waiting.set(owner, jobs);
    jobs.push({ json, schema, verdict });
    if (!under) next();
    return verdict.promise;
  };
}
