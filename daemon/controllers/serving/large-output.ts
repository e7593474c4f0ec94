// Outputs that would hold the daemon's thread for milliseconds: read and checked in a thread of their own, and sent on as the text that
// they came as, so that whoever calls another controller meanwhile does not wait.
import type { FieldProblem } from "#contract/errors.ts";
import { giveBack } from "../cell/large-memory.ts";
import type { TimeLimit } from "../job-thread.ts";
import { checkThread } from "./check-thread.ts";
import type { SchemaCheck } from "./slow-check.ts";

/** JSON text that was checked. Whoever needs the value gets it by way of JSON.stringify or `value()`, and pays for it. */
export interface LargeOutput {
  readonly json: Uint8Array;
  value(): unknown;
  toJSON(): unknown;
  /** Nobody reads it any more: its memory is used for the next one. Who does not call it leaves it to the garbage collector. */
  release(): void;
}

const large = new WeakSet<object>();

export function isLargeOutput(output: unknown): output is LargeOutput {
  return typeof output === "object" && output !== null && large.has(output);
}

const checkOutput = checkThread("outputs");

/** Takes the bytes: they are not the caller's any more. Rejects at the limit, and where the thread ends. */
export async function checkLargeOutput(
  json: Uint8Array,
  check: SchemaCheck,
  limit: TimeLimit,
): Promise<{ output: LargeOutput } | { problems: readonly FieldProblem[] | null }> {
  const { broken, problems } = await checkOutput({ json, schema: check.text }, check, limit);
  if (!broken && problems.length === 0) return { output: largeOutput(json) };
  giveBack(json);
  return { problems: broken ? null : problems };
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
