// A controller's contract as its tests obey it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { Capability, ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import { problemLine } from "#contract/problem.ts";
import { HandlerError } from "#sdk/errors.ts";

export interface TestContract {
  readonly contract: ControllerContract;
  checkInput(input: unknown): void;
  checkOutput(output: unknown): void;
  /** Throws `capability_denied` unless the contract declares it. */
  need(capability: Capability): void;
  denied(detail: string): HandlerError;
}

/** The contract in a controller's folder. Throws with every problem in it. */
export function contractIn(folder: string): TestContract {
  const name = ["contract.yaml", "contract.yml", "contract.json"].find((file) => existsSync(join(folder, file)));
  if (!name) throw new HandlerError("contract_invalid", `There is no contract.yaml in ${folder}.`);
  const { contract, problems } = readContract(readFileSync(join(folder, name)), name);
  if (!contract) throw new HandlerError("contract_invalid", problems.map(problemLine).join("\n"));
  const input = compile(contract.input_schema);
  const output = compile(contract.output_schema);
  const denied = (detail: string) => new HandlerError("capability_denied", detail);
  return {
    contract,
    denied,
    checkInput: (value) => check(input, value, "input_invalid", "input"),
    checkOutput: (value) => check(output, JSON.parse(JSON.stringify(value) ?? "null"), "output_invalid", "output"),
    need: (capability) => {
      if (!contract.capabilities?.includes(capability))
        throw denied(`The contract does not declare ${capability}: add it to capabilities in ${name}.`);
    },
  };
}

function compile(schema: boolean | Record<string, unknown>): ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
  formats.default(ajv);
  return ajv.compile(schema);
}

function check(validate: ValidateFunction, value: unknown, code: string, what: string): void {
  if (validate(value)) return;
  const wrong = (validate.errors ?? []).map((error) => `${what}${error.instancePath} ${error.message}`);
  throw new HandlerError(code, `The ${what} does not fit the contract: ${wrong.join("; ")}.`);
}
