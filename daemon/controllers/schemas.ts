// The contract's schemas, compiled once per version, and held to a time limit where checking one may take long.
import type { ErrorObject } from "ajv/dist/2020.js";
import type { FieldProblem } from "#contract/errors.ts";
import { schemaErrors } from "#contract/json-schema/value-errors.ts";
import { OutOfTime, within } from "#contract/time-limit.ts";
import { costOf, isTiny } from "./schema-cost.ts";
import type { Schema } from "./versions/schema.ts";

/** Every place where the value does not fit; empty where it fits; null where `ms` milliseconds were not enough to tell. */
export type Check = (value: unknown, ms: number) => readonly FieldProblem[] | null;

const NOTHING: readonly FieldProblem[] = [];
const TOO_DEEP: readonly FieldProblem[] = [{ pointer: "", code: "depth", detail: "nests too deep to be checked" }];
const MAX_PROBLEMS = 100;

/** Compiling costs more than a whole invocation, and most new versions of a controller keep their schemas. Oldest use first. */
const compiled = new Map<string, Check>();
const MAX_COMPILED = 256;
/** Characters of all schemas that are kept. */
const MAX_KEPT_TEXT = 4 * 1024 * 1024;
let keptText = 0;

/** `text`: the schema in JSON. `whole`: all at once, what only refused values need too; a time limit does not count it then. */
export function compileSchema(text: string, whole = false): Check {
  if (text.length > MAX_KEPT_TEXT) return checkOf(text, whole);
  const check = compiled.get(text) ?? checkOf(text, whole);
  if (!compiled.delete(text)) keptText += text.length;
  compiled.set(text, check);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= MAX_COMPILED && keptText <= MAX_KEPT_TEXT) break;
    compiled.delete(oldest);
    keptText -= oldest.length;
  }
  return check;
}

function checkOf(text: string, whole: boolean): Check {
  const schema = JSON.parse(text) as Schema;
  const check = unlimited(schema, whole);
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

function unlimited(schema: Schema, whole: boolean): (value: unknown) => readonly FieldProblem[] {
  const errorsOf = schemaErrors(schema, whole);
  return (value) => {
    try {
      const errors = errorsOf(value);
      return errors.length === 0 ? NOTHING : problemsOf(errors);
    } catch (error) {
      // A schema that refers to itself follows the value to its end.
      if (error instanceof RangeError) return TOO_DEEP;
      throw error;
    }
  };
}

function problemsOf(errors: readonly ErrorObject[]): FieldProblem[] {
  return errors.slice(0, MAX_PROBLEMS).map((error) => {
    const params = error.params as Record<string, unknown>;
    const key = params["missingProperty"] ?? params["additionalProperty"] ?? params["unevaluatedProperty"];
    const name = key === undefined ? "" : `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return { pointer: error.instancePath + name, code: error.keyword, detail: detailOf(error, params) };
  });
}

/** Of a long list the first ones: it would come with each of the problems. */
const MAX_LISTED = 1_000;

function listed(values: readonly unknown[]): string {
  const text = JSON.stringify(values);
  return text.length <= MAX_LISTED ? text : `${text.slice(0, MAX_LISTED)}...`;
}

function detailOf(error: ErrorObject, params: Record<string, unknown>): string {
  if (error.keyword === "required") return "missing";
  if (error.keyword === "additionalProperties" || error.keyword === "unevaluatedProperties") return "unknown field";
  if (error.keyword === "enum") return `must be one of ${listed(params["allowedValues"] as unknown[])}`;
  return error.message ?? "not valid";
}
