// The JSON Schemas inside a contract: valid under 2020-12, self-contained, resolvable, and safe to run on hostile input.
import { brief } from "../check.ts";
import { toPointer } from "../json-pointer.ts";
import type { Problem } from "../problem.ts";
import { MAX_PROBLEMS, type Source } from "../source.ts";
import { OutOfTime, within } from "../time-limit.ts";
import { forgetCompilers, whyNotCompiled } from "./compilers.ts";
import { checkMetaschema } from "./metaschema.ts";
import { checkCycles } from "./references.ts";
import { checkSubschema } from "./subschema.ts";
import { type Add, type Schema, walk } from "./walk.ts";

/** Each pattern is tried, references and names are looked for among all, and what Ajv writes for some schemas grows with the square of their size. */
const CHECK_MS = 5_000;
/** On a machine that gave it less than half a processor meanwhile, so many times as long: an honest half megabyte may need two seconds of one. */
const CROWDED = 4;

/** The problems of the schema that stands at `base` (`/input_schema`); one that takes longer than `ms` cannot be used. */
export function checkEmbedded(source: Source, base: string, schema: unknown, ms = CHECK_MS, times = 1): Problem[] {
  const problems: Problem[] = [];
  const add: Add = (at, key, code, message, fix, value) => {
    if (problems.length >= MAX_PROBLEMS) return;
    const pointer = key === undefined ? at : at + toPointer([key]);
    problems.push({
      file: source.file,
      ...source.locate(at, key),
      pointer,
      code,
      message,
      fix,
      ...(value === undefined ? {} : { value: brief(value) }),
    });
  };
  if (typeof schema === "boolean") return problems;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return problems; // the contract's own schema says so
  const unusable = (why: string): void =>
    add(
      base,
      undefined,
      "schema_invalid",
      `The schema cannot be used: ${why}.`,
      "Correct it as JSON Schema 2020-12 asks.",
    );
  const before = process.threadCpuUsage();
  try {
    within(ms * times, () => {
      checkMetaschema(schema as Schema, base, add);
      walk(schema, base, (node, at) => checkSubschema(node, at, schema as Schema, base, add));
      checkCycles(schema as Schema, base, add);
      // Whatever is left: what Ajv itself refuses.
      const why = problems.length === 0 ? whyNotCompiled(schema as Schema) : null;
      if (why !== null) unusable(why);
    });
  } catch (error) {
    forgetCompilers();
    const late = error instanceof OutOfTime;
    if (!late && !(error instanceof RangeError)) throw error;
    const { user, system } = process.threadCpuUsage(before);
    if (late && times === 1 && user + system < ms * 500) return checkEmbedded(source, base, schema, ms, CROWDED);
    unusable(late ? "it takes too long to be checked" : "it is too large, or nests too deeply");
  }
  return problems;
}
