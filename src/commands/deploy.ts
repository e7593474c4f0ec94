// magic deploy: an immutable version of a controller, to this machine's daemon or another one.
import { statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Artifact, buildController, deployArtifact, getController } from "#client/controllers.ts";
import type { ApiClient } from "#client/http.ts";
import { clientOf, localClientOf } from "#commands/client-of.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { CONTRACT_FILES } from "#contract/controller-files.ts";
import { MagicError } from "#contract/errors.ts";
import { shellWord } from "#output/shell-word.ts";
import { exampleOf } from "#scaffold/examples.ts";
import { folderFor } from "#scaffold/locate.ts";
import { readWhole } from "#shared/collect.ts";
import { findRoot } from "#shared/paths.ts";
import { percentOf } from "./controller/percent.ts";

interface Options {
  readonly alias?: string;
  readonly percent?: string;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .argument("<path>", "the controller's folder or name, or what `magic build` wrote")
      .option("--alias <alias>", "the alias to point at it (default latest)")
      .option("--percent <n>", "give it only this share of the alias's calls"),
  async run(context) {
    const { args, options, output, signal } = context;
    const percent = percentOf(options.percent);
    const artifact = await artifactOf(String(args[0]), context);
    const client = await clientOf(context);
    const before =
      output.format === "text" ? await pointedAt(client, artifact.contract.name, options.alias) : undefined;
    const deployed = await deployArtifact(client, artifact, { alias: options.alias, percent, signal });
    const { name, version, digest, alias } = deployed;
    const invoke = `magic invoke ${name}${ofAlias("--version", options.alias)}${inputOf(artifact)}`;
    const rollback = `magic controller rollback ${name}${ofAlias("--alias", options.alias)}`;
    output.result(deployed, (paint) =>
      [
        `${paint.green("✔")} Deployed ${paint.bold(name)} ${version} to ${client.url} as ${paint.bold(alias)}${percent === undefined ? "" : ` (${percent} % of its calls)`}`,
        `  ${paint.dim(digest)}`,
        "",
        `Next:  ${paint.cyan(invoke)}${before === undefined || before === version ? "" : `   and to go back  ${paint.cyan(rollback)}`}`,
      ].join("\n"),
    );
  },
});

/** The version that calls of the alias reach now; undefined where there is none, or the key may deploy and not read. */
async function pointedAt(client: ApiClient, name: string, alias = "latest"): Promise<string | undefined> {
  return getController(client, name).then(
    ({ aliases }) => (Object.hasOwn(aliases, alias) ? aliases[alias] : undefined),
    () => undefined,
  );
}

const ofAlias = (option: string, alias: string | undefined): string =>
  alias === undefined ? "" : ` ${option} ${alias}`;

// Most contracts demand something: `{}`, which the command sends without --input, would be refused.
function inputOf({ contract }: Artifact): string {
  const example = JSON.stringify(exampleOf(contract["input_schema"]));
  return example === "{}" ? "" : ` --input ${shellWord(example)}`;
}

async function artifactOf(given: string, context: Context<Options>): Promise<Artifact> {
  const { cwd, globals, env, signal } = context;
  const path = resolve(cwd, given);
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  const isContract = isFile && (CONTRACT_FILES as readonly string[]).includes(basename(path));
  if (isFile && !isContract) return readArtifact(path);
  const root = findRoot(globals.root, env, cwd);
  const folder = folderFor(isContract ? dirname(path) : given, root.project ? root.path : undefined, cwd);
  return buildController(await localClientOf(context), folder, signal);
}

/** More than the daemon takes. */
const MAX_BYTES = 64 * 1024 * 1024;

async function readArtifact(path: string): Promise<Artifact> {
  try {
    const found = JSON.parse(String(await readWhole(path, MAX_BYTES))) as Partial<Artifact>;
    if (found.contract && typeof found.code === "string" && typeof found.digest === "string") return found as Artifact;
  } catch {
    // Said below: what is wrong with it does not matter.
  }
  throw new MagicError("validation_failed", `${path} is not what \`magic build\` writes.`, {
    extra: { next: "Name a controller's folder, or build it first." },
  });
}
