// A controller's folder -> an artifact, or every problem of its contract and its sources at once.
import { readFile, realpath, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { CONTRACT_FILES, unreadableContract } from "#contract/controller-files.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";
import { openBundler } from "./bundle/bundler.ts";
import { digestOf } from "./bundle/digest.ts";
import { readContractApart } from "./contract-thread.ts";
import type { Artifact } from "./runtime.ts";

export type SourceResult =
  | { readonly ok: true; readonly artifact: Artifact; readonly inputs: readonly string[] }
  | { readonly ok: false; readonly problems: readonly SourceProblem[]; readonly inputs: readonly string[] };

export interface ControllerSource {
  /**
   * Reads and builds what is on disk now, `changed` being files that were saved since the last time; call it one at a time. Throws the signal's
   * reason.
   */
  read(changed?: readonly string[], signal?: AbortSignal): Promise<SourceResult>;
  dispose(): Promise<void>;
}

interface ContractReading {
  readonly contract: ControllerContract | undefined;
  readonly problems: readonly SourceProblem[];
  /** The file that was read, which a link may lead to. */
  readonly origin?: string;
}

/** `root`: the project's folder, which problems name their files relative to. `withinMs`: what a build may take. */
export function openSource(folder: string, root: string, withinMs?: number): ControllerSource {
  const bundler = openBundler(folder, root, withinMs);
  // Most saves leave the contract alone, and checking one costs more than building the handler.
  let last: { readonly file: string; readonly text: string; readonly reading: ContractReading } | null = null;

  async function contractNow(): Promise<ContractReading> {
    for (const name of CONTRACT_FILES) {
      const file = join(folder, name);
      const content = await bytesOf(file).catch((error: NodeJS.ErrnoException) => error);
      if (content instanceof Error) {
        if (content.code === "ENOENT") continue;
        return unreadable(join(relative(root, folder), name), content.message);
      }
      const text = content.toString("latin1");
      if (last?.file !== file || last.text !== text)
        last = { file, text, reading: await readContractApart(content, relative(root, file), folder) };
      return { ...last.reading, origin: await realpath(file).catch(() => file) };
    }
    return missing(join(relative(root, folder), CONTRACT_FILES[0]));
  }

  return {
    async read(changed, signal) {
      const [{ contract, problems, origin }, bundle] = await Promise.all([
        contractNow(),
        bundler.build(changed, signal),
      ]);
      const inputs = origin === undefined ? bundle.inputs : [...bundle.inputs, origin];
      const built = bundle.ok
        ? []
        : bundle.problems.map((one) => ({ ...one, file: join(relative(root, folder), one.file) }));
      if (!contract || !bundle.ok) return { ok: false, problems: [...problems, ...built], inputs };
      const { code, map } = bundle;
      return { ok: true, artifact: { contract, code, map, digest: digestOf(contract, code) }, inputs };
    },
    dispose: bundler.dispose,
  };
}

/** Far beyond what a contract may have; more is not read to be refused. */
const MOST_BYTES = 16 * 1024 * 1024;

async function bytesOf(file: string): Promise<Buffer> {
  const found = await stat(file);
  // A device, or a pipe, could be read without end.
  if (!found.isFile() || found.size > MOST_BYTES)
    throw new Error(found.isFile() ? "it is too large" : "it is not a file");
  return await readFile(file);
}

function missing(file: string): ContractReading {
  const fix = `Add ${CONTRACT_FILES[0]}, or run \`magic scaffold\`.`;
  return withProblem(file, "contract_missing", "The controller has no contract.", fix);
}

function unreadable(file: string, why: string): ContractReading {
  const { message, fix } = unreadableContract(why);
  return withProblem(file, "contract_unreadable", message, fix);
}

function withProblem(file: string, code: string, message: string, fix: string): ContractReading {
  return { contract: undefined, problems: [{ file, line: 1, column: 1, pointer: "", code, message, fix }] };
}
