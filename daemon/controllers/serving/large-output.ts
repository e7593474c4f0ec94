// Outputs that would hold the daemon's thread for milliseconds: read and checked in a thread of their own, and sent on as the text that
// they came as, so that whoever calls another controller meanwhile does not wait.
import { Worker } from "node:worker_threads";
import type { FieldProblem } from "#contract/errors.ts";

type Schema = boolean | Record<string, unknown>;

/** JSON text that was checked. Whoever needs the value gets it by way of JSON.stringify or `value()`, and pays for it. */
export interface LargeOutput {
  readonly json: Uint8Array;
  value(): unknown;
  toJSON(): unknown;
}

export interface OutputJob {
  readonly id: number;
  readonly schema: Schema;
  readonly json: Uint8Array<ArrayBuffer>;
}

/** `broken`: it is no JSON text. */
export interface OutputVerdict {
  readonly id: number;
  readonly broken: boolean;
  readonly problems: readonly FieldProblem[];
  readonly json: Uint8Array<ArrayBuffer>;
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
  bytes: Uint8Array,
  schema: Schema,
): Promise<{ output: LargeOutput } | { problems: readonly FieldProblem[] | null }> {
  const whole = bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength - bytes.length < 64;
  const json = whole ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
  const id = ++lastId;
  const verdict = Promise.withResolvers<OutputVerdict>();
  waiting.set(id, verdict);
  worker ??= start();
  worker.ref();
  worker.postMessage({ id, schema, json } satisfies OutputJob, [json.buffer]);
  const { broken, problems, json: back } = await verdict.promise;
  if (broken) return { problems: null };
  return problems.length > 0 ? { problems } : { output: largeOutput(back) };
}

function start(): Worker {
  const thread = new Worker(new URL(import.meta.resolve("#entry/output-worker")), { name: "outputs" });
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
  const value = (): unknown => JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
  const output: LargeOutput = { json, value, toJSON: value };
  large.add(output);
  return output;
}
