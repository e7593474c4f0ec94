// What an editor needs to complete and check a project without any install: JSON Schemas of its YAML files, and a tsconfig that
// finds magic/sdk here. They lie in .magic/, made anew whenever they differ, and are not committed.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ControllerContract } from "#contract/controller.ts";
import { ProjectConfig } from "#contract/project.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { stateFolder } from "#shared/paths.ts";
import { installation, sdkEntries } from "./installation.ts";

/** Writes `.magic/schema/*.json` and `.magic/tsconfig.json`, those that differ. */
export function writeEditorFiles(root: string): void {
  const state = stateFolder(root);
  makeFolder(state, 0o700);
  if (!existsSync(join(state, ".gitignore"))) writeFileSync(join(state, ".gitignore"), "*\n");
  for (const [name, content] of Object.entries(editorFiles())) writeIfDifferent(join(state, name), content);
}

const unwritable: ReadonlySet<unknown> = new Set(["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"]);

/** For commands that only look: a checkout that is another's or read-only, as in CI, is no reason to fail. */
export function whereWritable(write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!unwritable.has((error as NodeJS.ErrnoException).code)) throw error;
  }
}

function editorFiles(): Record<string, string> {
  const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  return {
    "schema/controller.json": json(ControllerContract),
    "schema/project.json": json(ProjectConfig),
    "tsconfig.json": json({
      compilerOptions: {
        target: "esnext",
        lib: ["esnext", "dom", "dom.iterable"],
        module: "preserve",
        moduleResolution: "bundler",
        moduleDetection: "force",
        noEmit: true,
        strict: true,
        noUncheckedIndexedAccess: true,
        verbatimModuleSyntax: true,
        erasableSyntaxOnly: true,
        allowImportingTsExtensions: true,
        allowJs: true,
        checkJs: true,
        skipLibCheck: true,
        types: ["node"],
        typeRoots: [join(installation, "node_modules", "@types")],
        paths: Object.fromEntries(Object.entries(sdkEntries).map(([name, { types }]) => [name, [types]])),
      },
    }),
  };
}

/** Leaves a file alone that is right already: editors and watchers need not look again. */
export function writeIfDifferent(path: string, content: string): boolean {
  if (existsSync(path) && readFileSync(path, "utf8") === content) return false;
  makeFolder(dirname(path));
  writeFileSync(path, content);
  return true;
}
