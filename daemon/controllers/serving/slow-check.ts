// A schema's check as a call meets it: on the daemon's thread where it is quick. A pattern, or forms that refer to themselves, may take as
// long as whoever sends the value wants: such a check goes on in a thread of its own, as do all of a large schema.
import type { FieldProblem } from "#contract/errors.ts";
import { isLarge } from "#contract/json-schema/value-errors.ts";
import type { TimeLimit } from "../job-thread.ts";
import { compileSchema } from "../schemas.ts";
import type { Schema } from "../versions/schema.ts";
import { checkThread } from "./check-thread.ts";

export interface SchemaCheck {
  /** The schema in JSON. */
  readonly text: string;
  /** What does not fit; null where it takes longer to tell than everybody else may be held up. */
  atOnce(value: unknown): readonly FieldProblem[] | null;
  /** The same for what took longer, after the slow checks of this schema that came before. `json` is the value's text. */
  elsewhere(json: string, limit: TimeLimit): Promise<readonly FieldProblem[]>;
  /** Resolves when the first check takes no longer than the others. */
  ready(): Promise<unknown>;
}

const AT_ONCE_MS = 5;
/** A schema that was slow is not tried on the daemon's thread for so long: calls would hold it up in turn. */
const SLOW_FOR_MS = 1_000;

const slowChecks = checkThread("slow checks");

export function schemaCheck(schema: Schema): SchemaCheck {
  const text = JSON.stringify(schema);
  // To compile a large one, and to read what came of it, takes longer than everybody else may be held up.
  const check = isLarge(text) ? null : compileSchema(text);
  let slowUntil = 0;
  const own: SchemaCheck = {
    text,
    atOnce(value) {
      if (check === null) return null;
      if (slowUntil > 0 && performance.now() < slowUntil) return null;
      const problems = check(value, AT_ONCE_MS);
      if (problems === null) slowUntil = performance.now() + SLOW_FOR_MS;
      return problems;
    },
    elsewhere: async (json, limit) => (await slowChecks({ json, schema: text }, own, limit)).problems,
    ready: async () => check ?? (await slowChecks({ json: "null", schema: text }, own)),
  };
  return own;
}
