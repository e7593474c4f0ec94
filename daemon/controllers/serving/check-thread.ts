// Threads that read JSON and check it against a contract's schema, where that would hold up the daemon's own.
import { Worker } from "node:worker_threads";
import type { FieldProblem } from "#contract/errors.ts";
import { startBehind } from "../cell/standing.ts";
import type { Schema } from "../versions/schema.ts";

export interface CheckJob {
  readonly id: number;
  readonly schema: Schema;
  /** JSON text; bytes must be UTF-8. */
  readonly json: Uint8Array | string;
}

/** `broken`: it is no JSON text. */
export interface Verdict {
  readonly id: number;
  readonly broken: boolean;
  readonly problems: readonly FieldProblem[];
}

/** One after the other, in their order. Rejects where the thread ends. */
export type CheckThread = (json: CheckJob["json"], schema: Schema) => Promise<Verdict>;

/** The thread is started with its first job. */
export function checkThread(name: string): CheckThread {
  const waiting = new Map<number, PromiseWithResolvers<Verdict>>();
  let worker: Worker | null = null;
  let lastId = 0;

  function start(): Worker {
    const entry = new URL(import.meta.resolve("#entry/check-worker"));
    const thread = startBehind(() => new Worker(entry, { name }));
    let failure: unknown = new Error(`the thread ${name}, which checks JSON, has ended`);
    thread.on("message", (verdict: Verdict) => {
      waiting.get(verdict.id)?.resolve(verdict);
      waiting.delete(verdict.id);
      // Nothing under way keeps no process alive.
      if (waiting.size === 0) thread.unref();
    });
    thread.on("error", (error) => {
      failure = error;
    });
    thread.on("exit", () => {
      worker = null;
      for (const one of waiting.values()) one.reject(failure);
      waiting.clear();
    });
    return thread;
  }

  return (json, schema) => {
    const id = ++lastId;
    const verdict = Promise.withResolvers<Verdict>();
    waiting.set(id, verdict);
    worker ??= start();
    worker.ref();
    worker.postMessage({ id, schema, json } satisfies CheckJob);
    return verdict.promise;
  };
}
