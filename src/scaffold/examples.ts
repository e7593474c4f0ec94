// Inputs to try a controller with, and its types, both made from its contract on this machine.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import { sampleOf } from "#sdk/testing/sample.ts";
import { contractIn, controllersIn, refreshTypes } from "./validation.ts";

/** An input that fits the controller's input_schema as far as a guess can; `{}` where its contract cannot be read. */
export function exampleInput(folder: string, name: string): unknown {
  return exampleOf(contracts(folder).find(({ contract }) => contract.name === name)?.contract.input_schema);
}

/** A value that fits the schema as far as a guess can: its own example before a made one. */
export function exampleOf(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return {};
  const { examples } = schema as { examples?: unknown };
  return Array.isArray(examples) && examples.length > 0 ? examples[0] : (sampleOf(schema) ?? {});
}

/** Brings contract.types.ts of one or all controllers up to date. */
export function refreshTypesIn(folder: string, name?: string): void {
  for (const { path, contract } of contracts(folder))
    if (name === undefined || contract.name === name) refreshTypes(path, contract);
}

function contracts(folder: string): { path: string; contract: ControllerContract }[] {
  return controllersIn(folder).flatMap((path) => {
    const file = contractIn(path);
    if (!file || !statSync(join(path, file)).isFile()) return [];
    const { contract } = readContract(readFileSync(join(path, file)), file);
    return contract ? [{ path, contract }] : [];
  });
}
