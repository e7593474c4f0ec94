// A controller's folder -> an artifact, or every problem of its contract and its sources at once.
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";
import type { Bundler } from "./bundle/bundler.ts";
import { digestOf } from "./bundle/digest.ts";
import type { Artifact } from "./runtime.ts";

export type SourceResult =
  | { readonly ok: true; readonly artifact: Artifact; readonly inputs: readonly string[] }
  | { readonly ok: false; readonly problems: readonly SourceProblem[]; readonly inputs: readonly string[] };

export const CONTRACT_FILES = ["contract.yaml", "contract.yml", "contract.json"] as const;

/** `root`: what problems name their files relative to. */
export async function readController(folder: string, root: string, bundler: Bundler): Promise<SourceResult> {
  const [contract, bundle] = await Promise.all([contractOf(folder, root), bundler.build()]);
  const { inputs } = bundle;
  const built = bundle.ok
    ? []
    : bundle.problems.map((one) => ({ ...one, file: join(relative(root, folder), one.file) }));
  if (!contract.contract || !bundle.ok) return { ok: false, problems: [...contract.problems, ...built], inputs };
  const { code, map } = bundle;
  const digest = digestOf(contract.contract, code);
  return { ok: true, artifact: { contract: contract.contract, code, map, digest }, inputs };
}

async function contractOf(
  folder: string,
  root: string,
): Promise<{ contract: ControllerContract | undefined; problems: readonly SourceProblem[] }> {
  for (const name of CONTRACT_FILES) {
    const file = join(folder, name);
    try {
      return readContract(await readFile(file), relative(root, file));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  const file = join(relative(root, folder), CONTRACT_FILES[0]);
  const message = "The controller has no contract.";
  const fix = `Add ${CONTRACT_FILES[0]}, or run \`magic scaffold\`.`;
  return {
    contract: undefined,
    problems: [{ file, line: 1, column: 1, pointer: "", code: "contract_missing", message, fix }],
  };
}
