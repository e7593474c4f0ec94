// A controller's contract as its tests obey it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import { CONTRACT_FILES } from "#contract/controller-files.ts";
import { refusalOf, refusalText, type Wish } from "#contract/grants.ts";
import { ITERABLE_OUTPUT, isIterableOutput } from "#contract/iterable-output.ts";
import { schemaErrors } from "#contract/json-schema/value-errors.ts";
import { problemLine } from "#contract/problem.ts";
import { MAX_OUTPUT } from "#contract/runtime-limits.ts";
import { HandlerError } from "#sdk/errors.ts";
import { asJson } from "./json.ts";

export interface TestContract {
  readonly contract: ControllerContract;
  /** The input as the handler gets it. */
  input(input: unknown): unknown;
  /** The output as the caller gets it. */
  output(output: unknown): unknown;
  /** Throws `capability_denied` unless the contract declares it. */
  need(wish: Wish): void;
}

/** The contract in a controller's folder. Throws with every problem in it. */
export function contractIn(folder: string): TestContract {
  const name = CONTRACT_FILES.find((file) => existsSync(join(folder, file)));
  if (!name) throw new HandlerError("contract_invalid", `There is no contract.yaml in ${folder}.`);
  const { contract, problems } = readContract(readFileSync(join(folder, name)), name);
  if (!contract) throw new HandlerError("contract_invalid", problems.map(problemLine).join("\n"));
  const checkInput = schemaErrors(contract.input_schema);
  const checkOutput = schemaErrors(contract.output_schema);
  return {
    contract,
    input(given) {
      const value = asJson(given);
      check(checkInput, value, "input_invalid", "input");
      return value;
    },
    output(given) {
      const value = outputOf(given);
      check(checkOutput, value, "output_invalid", "output");
      return value;
    },
    need(wish) {
      const refusal = refusalOf(contract, wish);
      if (!refusal) return;
      const error = new HandlerError("capability_denied", refusalText(contract.name, refusal));
      throw Object.defineProperty(error, "add", { value: refusal.add, enumerable: true });
    },
  };
}

function outputOf(given: unknown): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(given);
  } catch (error) {
    throw new HandlerError("output_invalid", `the output is not JSON: ${(error as Error).message}`);
  }
  if (isIterableOutput(given, text))
    throw new HandlerError("output_invalid", `the output is not JSON: ${ITERABLE_OUTPUT}`);
  if (Buffer.byteLength(text ?? "") > MAX_OUTPUT)
    throw new HandlerError("limit_exceeded", `the output has more than ${MAX_OUTPUT} bytes`);
  return JSON.parse(text ?? "null") as unknown;
}

function check(errorsOf: ReturnType<typeof schemaErrors>, value: unknown, code: string, what: string): void {
  const errors = errorsOf(value);
  if (errors.length === 0) return;
  const wrong = errors.map((error) => `${what}${error.instancePath} ${error.message}`);
  throw new HandlerError(code, `The ${what} does not fit the contract: ${wrong.join("; ")}.`);
}
