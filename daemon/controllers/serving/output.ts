// Reads what a handler answers, and checks it against the contract: at once, or in a thread of its own where that would hold others up.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import type { TimeLimit } from "../job-thread.ts";
import { checkLargeOutput, type LargeOutput } from "./large-output.ts";
import type { SchemaCheck } from "./slow-check.ts";

/**
 * @param limit of a check in a thread of its own.
 * @returns the output, or a promise of it; a LargeOutput where it came as bytes.
 * @throws MagicError `output_invalid`.
 */
export type ReadOutput = (json: string | Buffer, limit: TimeLimit) => unknown;

/** @param name the controller and its version, for messages. */
export function outputReader(name: string, check: SchemaCheck): ReadOutput {
  function read(json: string | Buffer, limit: TimeLimit): unknown {
    if (typeof json !== "string") return readLarge(json, limit);
    const output = parse(json);
    const problems = check.atOnce(output);
    if (problems === null) return slowlyChecked(json, output, limit);
    if (problems.length > 0) throw misfit(problems);
    return output;
  }

  async function slowlyChecked(json: string, output: unknown, limit: TimeLimit): Promise<unknown> {
    const problems = await check.elsewhere(json, limit);
    if (problems.length > 0) throw misfit(problems);
    return output;
  }

  async function readLarge(bytes: Buffer, limit: TimeLimit): Promise<LargeOutput> {
    const checked = await checkLargeOutput(bytes, check, limit);
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
