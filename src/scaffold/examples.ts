// Inputs to try a controller with, and its types, both made from its contract on this machine.
import { basename, join } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import { isMagicError } from "#contract/errors.ts";
import { sampleOf } from "#sdk/testing/sample.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { contractIn, controllersIn, refreshTypes } from "./validation.ts";

/** An input that fits the controller's input_schema as far as a guess can; `{}` where its contract cannot be read. */
export function exampleInput(folder: string, name: string): unknown {
  return exampleOf(named(folder, name)?.contract.input_schema);
}

/** A value that fits the schema as far as a guess can: its own example before a made one. */
export function exampleOf(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return {};
  const { examples } = schema as { examples?: unknown };
  return Array.isArray(examples) && examples.length > 0 ? examples[0] : (sampleOf(schema) ?? {});
}

/** Brings contract.types.ts of one or all controllers up to date. */
export function refreshTypesIn(folder: string, name?: string): void {
  if (name === undefined) for (const { path, contract } of contracts(folder)) refreshTypes(path, contract);
  else {
    const one = named(folder, name);
    if (one) refreshTypes(one.path, one.contract);
  }
}

interface Found {
  readonly path: string;
  readonly contract: ControllerContract;
}

const named = (folder: string, name: string): Found | undefined =>
  contracts(folder, name).find(({ contract }) => contract.name === name);

/** What is called as the folder that it lies in comes first: to check a contract takes milliseconds, and there may be hundreds. */
function* contracts(folder: string, name?: string): Generator<Found> {
  const { likely = [], others = [] } = Object.groupBy(controllersIn(folder), (path) =>
    basename(path) === name ? "likely" : "others",
  );
  for (const path of [...likely, ...others]) {
    const contract = contractAt(path);
    if (contract) yield { path, contract };
  }
}

/** Undefined where there is none that can be read and is valid: the session's own events say what is wrong. */
function contractAt(folder: string): ControllerContract | undefined {
  const file = contractIn(folder);
  if (!file) return undefined;
  try {
    return readContract(readPlainFile(join(folder, file)), file).contract;
  } catch (error) {
    // No permission, or gone since: a checkout changes many files at once.
    if (isMagicError(error) && error.code === "not_found") return undefined;
    throw error;
  }
}
