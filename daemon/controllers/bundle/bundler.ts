// A controller's handler and everything it imports -> one script and its source map. Incremental: esbuild keeps what did not change.
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  type BuildContext,
  type BuildOptions,
  type BuildResult,
  context,
  type Message,
  type Metafile,
  stop,
} from "esbuild";
import { HANDLER_FILES } from "#contract/controller-files.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";
import { awaitingOptions, mustAwait, requiresOne } from "./awaiting.ts";
import { addonPlugin, sdkPlugin } from "./policy.ts";
import { buildProblems } from "./problems.ts";
import { regularFilesPlugin, strayImports } from "./reach.ts";
import { hasTimeSetBack } from "./set-back.ts";

export type BundleResult =
  | { readonly ok: true; readonly code: string; readonly map: string; readonly inputs: readonly string[] }
  | { readonly ok: false; readonly problems: readonly SourceProblem[]; readonly inputs: readonly string[] };

export interface Bundler {
  /**
   * Builds what is on disk now; `changed` are files that were saved since the last time. Call it one at a time: esbuild's rebuild() joins a
   * running one and would miss a save.
   */
  build(changed?: readonly string[]): Promise<BundleResult>;
  dispose(): Promise<void>;
}

/** A bundle beyond it would not fit a load frame comfortably, and is a mistake. */
const MAX_BUNDLE_BYTES = 12 * 1024 * 1024;

/** esbuild runs in one process for everybody; how many have ended. */
let processesEnded = 0;

/** `root`: the project's folder. */
export function openBundler(folder: string, root: string): Bundler {
  let open: { entry: string; awaiting: boolean; context: BuildContext } | null = null;
  let inputs: readonly string[] = [];
  /** How many of esbuild's processes had ended when the context was made in the next one. */
  let ended = 0;

  async function close(): Promise<void> {
    await open?.context.dispose();
    open = null;
  }

  async function contextFor(entry: string, awaiting: boolean): Promise<BuildContext> {
    if (open?.entry === entry && open.awaiting === awaiting) return open.context;
    await close();
    ended = processesEnded;
    const options = optionsFor(folder, entry);
    open = { entry, awaiting, context: await context(awaiting ? awaitingOptions(options, entry) : options) };
    return open.context;
  }

  /** Once more with a new process where esbuild's was killed; what a source did wrong is thrown. */
  async function rebuilt(entry: string, awaiting = false): Promise<BuildResult> {
    try {
      return await (await contextFor(entry, awaiting)).rebuild();
    } catch (error) {
      const { errors } = error as { errors?: Message[] };
      if (errors && !awaiting && mustAwait(errors)) {
        const result = await rebuilt(entry, true);
        if (!requiresOne(result.metafile as Metafile, errors)) return result;
      }
      if (errors) throw error;
      open = null;
      // esbuild itself goes on asking the one that is gone. Who comes later, with a context of that one, finds that somebody has made room
      // already: whoever waits for an answer of the next one would never get it, were that stopped.
      if (ended === processesEnded) {
        processesEnded++;
        await stop();
      }
      return await (await contextFor(entry, awaiting)).rebuild();
    }
  }

  return {
    async build(changed = []) {
      const entry = HANDLER_FILES.find((name) => existsSync(join(folder, name)));
      if (!entry) return { ok: false, problems: [noHandler()], inputs };
      // esbuild would wait for a pipe's writer.
      if (statSync(join(folder, entry), { throwIfNoEntry: false })?.isFile() === false)
        return { ok: false, problems: [noFile(entry)], inputs };
      try {
        // The context would keep what it has read of them.
        if ((await Promise.all(changed.map(hasTimeSetBack))).includes(true)) await close();
        const result = await rebuilt(entry);
        const metafile = result.metafile as Metafile;
        inputs = inputFiles(folder, metafile);
        const strays = strayImports(metafile, folder, root);
        if (strays.length > 0) return { ok: false, problems: buildProblems(folder, strays), inputs };
        const code = textOf(result.outputFiles, ".js");
        if (Buffer.byteLength(code) > MAX_BUNDLE_BYTES) return { ok: false, problems: [tooLarge(entry, code)], inputs };
        return { ok: true, code, map: textOf(result.outputFiles, ".map"), inputs };
      } catch (error) {
        const failed = error as { errors?: Message[] };
        if (!failed.errors) throw error;
        return { ok: false, problems: buildProblems(folder, failed.errors), inputs };
      }
    },
    dispose: close,
  };
}

function optionsFor(folder: string, entry: string): BuildOptions {
  return {
    // From the folder: in a path esbuild takes `*` for a pattern.
    entryPoints: [`./${entry}`],
    absWorkingDir: folder,
    outfile: join(folder, "bundle.js"),
    bundle: true,
    write: false,
    metafile: true,
    format: "cjs",
    platform: "node",
    target: "node26",
    sourcemap: "external",
    sourcesContent: true,
    legalComments: "none",
    charset: "utf8",
    logLevel: "silent",
    // A cell loads no code but its bundle: import() becomes require() of what is inside it.
    supported: { "dynamic-import": false },
    define: {
      "import.meta.url": '"file:///controller/handler.js"',
      "import.meta.dirname": '"/controller"',
      "import.meta.filename": '"/controller/handler.js"',
    },
    loader: { ".wasm": "binary" },
    plugins: [sdkPlugin, addonPlugin, regularFilesPlugin],
  };
}

/** Absolute paths of the files that went in: what a development session watches. */
function inputFiles(folder: string, metafile: Metafile): string[] {
  return Object.keys(metafile.inputs)
    .filter((name) => !name.startsWith("magic:"))
    .map((name) => resolve(folder, name));
}

function textOf(files: readonly { path: string; text: string }[] | undefined, ending: string): string {
  return files?.find((file) => file.path.endsWith(ending))?.text ?? "";
}

function noHandler(): SourceProblem {
  return {
    file: "handler.ts",
    line: 1,
    column: 1,
    pointer: "",
    code: "handler_missing",
    message: "The controller has no handler.",
    fix: `Add one of ${HANDLER_FILES.join(", ")} with a default export.`,
  };
}

function noFile(entry: string): SourceProblem {
  const message = `${entry} is not a regular file.`;
  return { ...noHandler(), file: entry, code: "build_failed", message, fix: "Put the handler's source there." };
}

function tooLarge(entry: string, code: string): SourceProblem {
  return {
    ...noHandler(),
    file: entry,
    code: "bundle_too_large",
    message: `The bundle has ${Buffer.byteLength(code)} bytes, more than ${MAX_BUNDLE_BYTES}.`,
    fix: "Import less, or a smaller package.",
  };
}
