// Outputs that would hold the daemon's thread for milliseconds: read and checked in a thread of their own, and sent on as the text that
// they came as, so that whoever calls another controller meanwhile does not wait.
import { Worker } from "node:worker_threads";
import type { FieldProblem } from "#contract/errors.ts";
import { giveBack } from "../cell/large-memory.ts";
import { startBehind } from "../cell/standing.ts";

type Schema = boolean | Record<string, unknown>;

/** JSON text that was checked. Whoever needs the value gets it by way of JSON.stringify or `value()`, and pays for it. */
export interface LargeOutput {
  readonly json: Uint8Array;
  value(): unknown;
  toJSON(): unknown;
  /** Nobody reads it any more: its memory is used for the next one. Who does not call it leaves it to the garbage collector. */
  release(): void;
}

export interface OutputJob {
  readonly id: number;
  readonly schema: Schema;
  readonly json: Uint8Array;
}

/** `broken`: it is no JSON text. */
export interface OutputVerdict {
  readonly id: number;
  readonly broken: boolean;
  readonly problems: readonly FieldProblem[];
}

const large = new WeakSet<object>();

export function isLargeOutput(output: unknown): output is LargeOutput {
  return typeof output === "object" && output !== null && large.has(output);
}

let worker: Worker | null = null;
let lastId = 0;
const waiting = new Map<number, PromiseWithResolvers<OutputVerdict>>();

/** Takes the bytes: they are not the caller's any more. Rejects where the thread ends. */
export async function checkLargeOutput(
  json: Uint8Array,
  schema: Schema,
): Promise<{ output: LargeOutput } | { problems: readonly FieldProblem[] | null }> {
  const id = ++lastId;
  const verdict = Promise.withResolvers<OutputVerdict>();
  waiting.set(id, verdict);
  worker ??= start();
  worker.ref();
  worker.postMessage({ id, schema, json } satisfies OutputJob);
  const { broken, problems } = await verdict.promise;
  if (!broken && problems.length === 0) return { output: largeOutput(json) };
  giveBack(json);
  return { problems: broken ? null : problems };
}

function start(): Worker {
  const entry = new URL(import.meta.resolve("#entry/output-worker"));
  const thread = startBehind(() => new Worker(entry, { name: "outputs" }));
  let failure: unknown = new Error("the thread that reads large outputs has ended");
  thread.on("message", (verdict: OutputVerdict) => {
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

function largeOutput(json: Uint8Array): LargeOutput {
  let released = false;
  const value = (): unknown => {
    if (released) throw new Error("a large output was read after its release");
    return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
  };
  const release = (): void => {
    if (!released) giveBack(json);
    released = true;
  };
  const output: LargeOutput = { json, value, toJSON: value, release };
  large.add(output);
  return output;
}
