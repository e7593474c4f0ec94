// What the threads that read JSON and check it against a contract's schema are asked, and answer.
import { Worker } from "node:worker_threads";
import type { FieldProblem } from "#contract/errors.ts";
import { startBehind } from "../cell/standing.ts";
import { type JobThread, jobThread } from "../job-thread.ts";

export interface CheckJob {
  /** JSON text. */
  readonly schema: string;
  /** JSON text; bytes must be UTF-8. */
  readonly json: Uint8Array | string;
}

/** `broken`: it is no JSON text. */
export interface Verdict {
  readonly broken: boolean;
  readonly problems: readonly FieldProblem[];
}

/** It comes after all others. */
export function checkThread(name: string): JobThread<CheckJob, Verdict> {
  const entry = new URL(import.meta.resolve("#entry/check-worker"));
  return jobThread(name, () => startBehind(() => new Worker(entry, { name })));
}
