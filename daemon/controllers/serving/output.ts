// Reads what a handler answers, and checks it against the contract: at once, or in a thread of its own where that would hold others up.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import type { Schema } from "../versions/schema.ts";
import { checkLargeOutput, type LargeOutput } from "./large-output.ts";
import { schemaCheck } from "./slow-check.ts";

/** @returns the output, or a promise of it; a LargeOutput where it came as bytes. @throws MagicError `output_invalid`. */
export type ReadOutput = (json: string | Buffer) => unknown;

/** @param name the controller and its version, for messages. */
export function outputReader(name: string, schema: Schema): ReadOutput {
  const check = schemaCheck(schema);

  function read(json: string | Buffer): unknown {
    if (typeof json !== "string") return readLarge(json);
    const output = parse(json);
    const problems = check.atOnce(output);
    if (problems === null) return slowlyChecked(json, output);
    if (problems.length > 0) throw misfit(problems);
    return output;
  }

  async function slowlyChecked(json: string, output: unknown): Promise<unknown> {
    const problems = await check.elsewhere(json);
    if (problems.length > 0) throw misfit(problems);
    return output;
  }

  async function readLarge(bytes: Buffer): Promise<LargeOutput> {
    const checked = await checkLargeOutput(bytes, schema, check);
    if ("output" in checked) return checked.output;
    if (checked.problems) throw misfit(checked.problems);
    throw notJson();
  }

  function parse(json: string): unknown {
    try {
      return JSON.parse(json);
    } catch {
      throw notJson();
    }
  }

  const notJson = (): MagicError => new MagicError("output_invalid", `the output of ${name} is not JSON`);

  function misfit(problems: readonly FieldProblem[]): MagicError {
    return new MagicError("output_invalid", `the output does not fit ${name}'s output_schema`, { problems });
  }

  return read;
}
