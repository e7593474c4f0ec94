// magic build: a controller as one file that can be deployed anywhere: contract, bundle, source map, digest.
import { realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { buildController } from "#client/controllers.ts";
import { localClientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { shellWord } from "#output/shell-word.ts";
import { folderFor } from "#scaffold/locate.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { findRoot, shownPath, stateFolder } from "#shared/paths.ts";
import { replaceFileSync } from "#shared/replace-file.ts";
import { naming } from "#shared/write-error.ts";

export default defineCommand<{ out?: string }>({
  configure: (command) =>
    command
      .argument("<path>", "the controller's folder, or its name")
      .option("--out <file>", "where to write it (default: .magic/builds/NAME-VERSION.json)"),
  async run(context) {
    const { args, options, output, globals, env, cwd, signal } = context;
    const root = findRoot(globals.root, env, cwd);
    const folder = folderFor(String(args[0]), root.project ? root.path : undefined, cwd);
    const artifact = await buildController(await localClientOf(context), folder, signal);
    const { name, version } = artifact.contract;
    const file = resolve(cwd, options.out ?? join(stateFolder(root.path), "builds", `${name}-${version}.json`));
    makeFolder(dirname(file));
    write(file, `${JSON.stringify(artifact)}\n`);
    const bytes = Buffer.byteLength(artifact.code);
    const shown = shownPath(file, cwd);
    output.result(
      { name, version, digest: artifact.digest, file, bytes },
      (paint) =>
        `${paint.green("✔")} Built ${paint.bold(name)} ${version}, ${(bytes / 1024).toFixed(1)} kB\n  ${paint.dim(artifact.digest)}\n  ${shown}\n\nNext:  ${paint.cyan(`magic deploy ${shellWord(shown)}`)}`,
    );
  },
});

// What may be deployed next is the former build or this one. A link stays one, a device or a pipe takes the text.
function write(file: string, text: string): void {
  const there = statSync(file, { throwIfNoEntry: false });
  if (there && !there.isFile()) naming(file, () => writeFileSync(file, text));
  else replaceFileSync(there ? realpathSync(file) : file, text, there?.mode ?? 0o666);
}
