// The contract's schemas, compiled once per version: a quick check for every call, a second that names every problem for refused ones.
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import type { FieldProblem } from "#contract/errors.ts";
import { code } from "#contract/evaluated.ts";
import { addFormats } from "#contract/formats.ts";
import { OutOfTime, within } from "#contract/time-limit.ts";
import { costOf, isTiny } from "./schema-cost.ts";
import { uniqueItems } from "./unique-items.ts";
import type { Schema } from "./versions/schema.ts";

/** Every place where the value does not fit; empty where it fits; null where `ms` milliseconds were not enough to tell. */
export type Check = (value: unknown, ms: number) => readonly FieldProblem[] | null;

const NOTHING: readonly FieldProblem[] = [];
const MAX_PROBLEMS = 100;

/** Compiling costs more than a whole invocation, and most new versions of a controller keep their schemas. Oldest use first. */
const compiled = new Map<string, Check>();
const MAX_COMPILED = 256;
/** Characters of all schemas that are kept. */
const MAX_KEPT_TEXT = 4 * 1024 * 1024;
let keptText = 0;

export function compileSchema(schema: Schema): Check {
  const text = JSON.stringify(schema);
  if (text.length > MAX_KEPT_TEXT) return checkOf(schema);
  const check = compiled.get(text) ?? checkOf(schema);
  if (!compiled.delete(text)) keptText += text.length;
  compiled.set(text, check);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= MAX_COMPILED && keptText <= MAX_KEPT_TEXT) break;
    compiled.delete(oldest);
    keptText -= oldest.length;
  }
  return check;
}

function checkOf(schema: Schema): Check {
  const check = unlimited(schema);
  const cost = costOf(schema);
  if (cost === "linear") return check;
  return (value, ms) => {
    if (cost === "small when tiny" && isTiny(value)) return check(value);
    try {
      return within(ms, () => check(value));
    } catch (error) {
      if (error instanceof OutOfTime) return null;
      throw error;
    }
  };
}

function unlimited(schema: Schema): (value: unknown) => readonly FieldProblem[] {
  const quick = compile(schema, false);
  let thorough: ValidateFunction | undefined;
  const text = JSON.stringify(schema);
  // The quick one of Ajv leaves `contains` out for arrays shorter than `prefixItems`.
  const twice = text.includes('"prefixItems"') && text.includes('"contains"');
  return (value) => {
    const fits = quick(value);
    if (fits && !twice) return NOTHING;
    // All problems of a huge value would be a list as huge.
    if (!fits && JSON.stringify(value)?.length > 256 * 1024) return problemsOf(quick.errors);
    thorough ??= compile(schema, true);
    // The thorough one takes members for evaluated by a form that does not fit: what either refuses is refused.
    return problemsOf(thorough(value) ? quick.errors : thorough.errors);
  };
}

// A member called `constructor` is not there because every object inherits one. Only such schemas pay for the look.
const INHERITED = Object.getOwnPropertyNames(Object.prototype).map((name) => JSON.stringify(name));

function compile(schema: Schema, allErrors: boolean): ValidateFunction {
  const text = JSON.stringify(schema);
  const ownProperties = INHERITED.some((name) => text.includes(name));
  const options = { strict: false, allowUnionTypes: true, logger: false, validateSchema: false, code } as const;
  const ajv = new Ajv2020({ ...options, allErrors, ownProperties });
  addFormats(ajv).removeKeyword("uniqueItems").addKeyword(uniqueItems);
  if (typeof schema === "boolean") return ajv.compile(schema);
  // A name may be one that Ajv has given already, and references lead by `#` alone; `$async` would answer every value with a promise.
  const { $id: _id, $async: _async, ...rest } = schema;
  return ajv.compile(rest);
}

function problemsOf(errors: readonly ErrorObject[] | null | undefined): FieldProblem[] {
  return (errors ?? []).slice(0, MAX_PROBLEMS).map((error) => {
    const params = error.params as Record<string, unknown>;
    const key = params["missingProperty"] ?? params["additionalProperty"] ?? params["unevaluatedProperty"];
    const name = key === undefined ? "" : `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return { pointer: error.instancePath + name, code: error.keyword, detail: detailOf(error, params) };
  });
}

function detailOf(error: ErrorObject, params: Record<string, unknown>): string {
  if (error.keyword === "required") return "missing";
  if (error.keyword === "additionalProperties" || error.keyword === "unevaluatedProperties") return "unknown field";
  if (error.keyword === "enum") return `must be one of ${JSON.stringify(params["allowedValues"])}`;
  return error.message ?? "not valid";
}
