// Work whose time somebody else's input decides: a regular expression, a schema that refers to itself. It is ended from outside, because
// nothing inside of it looks at a clock.
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { type Context, createContext, Script } from "node:vm";
import { MagicError } from "./errors.ts";

let made: { context: Context; script: Script } | undefined;

/** Made when first needed: it costs 0.7 ms, and most programs never need it. */
function clock(): { context: Context; script: Script } {
  made ??= { context: createContext({ work: null }), script: new Script("work()") };
  return made;
}

/** What ends work that took too long; its answer is unknown. */
export class OutOfTime extends Error {}

/**
 * What `work` answers. Starting the clock costs about 0.1 ms.
 *
 * @param ms milliseconds. @throws OutOfTime when they have passed; `overloaded` where the clock cannot be started; what `work` throws.
 */
export function within<T>(ms: number, work: () => T): T {
  requireDescriptors();
  const { context, script } = clock();
  const outer = context["work"];
  context["work"] = work;
  try {
    return script.runInContext(context, { timeout: ms }) as T;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new OutOfTime(`not done within ${ms} ms`);
  } finally {
    context["work"] = outer;
  }
}

/** More than the clock takes. */
const DESCRIPTORS = 6;

/** Node ends the process where the clock gets none. */
function requireDescriptors(): void {
  const opened: number[] = [];
  try {
    while (opened.length < DESCRIPTORS) opened.push(openSync(devNull, "r"));
  } catch (cause) {
    const detail = "as many files and connections are open as the machine allows (`ulimit -n`)";
    throw new MagicError("overloaded", detail, { cause, retryAfterS: 1 });
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}
