// Work whose time somebody else's input decides: a regular expression, a schema that refers to itself. It is ended from outside, because
// nothing inside of it looks at a clock.
import { createContext, Script } from "node:vm";

const context = createContext({ work: null as (() => unknown) | null });
const script = new Script("work()");

/** What ends work that took too long; its answer is unknown. */
export class OutOfTime extends Error {}

/**
 * What `work` answers. Starting the clock costs about 0.1 ms.
 *
 * @param ms milliseconds. @throws OutOfTime when they have passed; what `work` throws.
 */
export function within<T>(ms: number, work: () => T): T {
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
