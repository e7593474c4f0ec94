// Values against a contract's schema, as the daemon and the fakes of magic/sdk/testing check them alike: a quick check for every value, a second
// that names every problem of refused ones.
import type { ErrorObject, ValidateFunction } from "ajv/dist/2020.js";
import { openAjv } from "./ajv.ts";
import { compileWithUnevaluated } from "./unevaluated.ts";

type Schema = boolean | Readonly<Record<string, unknown>>;

const NOTHING: readonly ErrorObject[] = [];

/** What does not fit; empty where all does. `whole`: the second check is made at once, too. */
export function schemaErrors(schema: Schema, whole = false): (value: unknown) => readonly ErrorObject[] {
  const quick = compile(schema, false);
  let thorough = whole ? compile(schema, true) : undefined;
  return (value) => {
    if (quick(value)) return NOTHING;
    // All problems of a huge value would be a list as huge.
    if (JSON.stringify(value)?.length > 256 * 1024) return quick.errors ?? NOTHING;
    thorough ??= compile(schema, true);
    thorough(value);
    return thorough.errors ?? quick.errors ?? NOTHING;
  };
}

// A member called `constructor` is not there because every object inherits one. Only such schemas pay for the look.
const INHERITED = Object.getOwnPropertyNames(Object.prototype).map((name) => JSON.stringify(name));

/**
 * Whether a schema, in JSON, takes a while to be compiled: what Ajv makes of a longer one would take it seconds to tidy up, and takes V8 a
 * while to read; where it matters what is unevaluated, there may be a check of each form besides.
 */
export function isLarge(text: string): boolean {
  return text.length > (text.includes('"unevaluated') ? 4 : 16) * 1024;
}

function compile(schema: Schema, allErrors: boolean): ValidateFunction {
  const text = JSON.stringify(schema);
  const ownProperties = INHERITED.some((name) => text.includes(name));
  const ajv = openAjv({ allErrors, ownProperties, code: { optimize: !isLarge(text) } });
  if (typeof schema === "boolean") return ajv.compile(schema);
  // A name may be one that Ajv has given already, and references lead by `#` alone; `$async` would answer every value with a promise.
  const { $id: _id, $async: _async, ...rest } = schema;
  return compileWithUnevaluated(ajv, rest);
}
