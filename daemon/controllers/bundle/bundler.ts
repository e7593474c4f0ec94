// A controller's handler and everything it imports -> one script and its source map. Incremental: esbuild keeps what did not change.
import { existsSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type BuildContext, type BuildOptions, type BuildResult, context, type Message, type Metafile } from "esbuild";
import { HANDLER_FILES } from "#contract/controller-files.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";
import { openPlaces } from "#shared/places.ts";
import { awaitingOptions, mustAwait, requiresOne } from "./awaiting.ts";
import { garbledSources } from "./encoding.ts";
import { addonPlugin, sdkPlugin } from "./policy.ts";
import { buildProblems, emptyImports, noFile, noHandler, tooLarge, tooLong, tooMuch } from "./problems.ts";
import { regularFilesPlugin, strayImports } from "./reach.ts";
import { ask, BuildTooLarge, BuildTooLong, currentService, endService, ServiceEnded, ServiceFull } from "./service.ts";
import { hasTimeSetBack } from "./set-back.ts";
import { isMapBroken, unmappedPlugin } from "./unmapped.ts";

export type BundleResult =
  | { readonly ok: true; readonly code: string; readonly map: string; readonly inputs: readonly string[] }
  | { readonly ok: false; readonly problems: readonly SourceProblem[]; readonly inputs: readonly string[] };

export interface Bundler {
  /**
   * Builds what is on disk now; `changed` are files that were saved since the last time. Call it one at a time: esbuild's rebuild() joins a
   * running one and would miss a save. Throws the signal's reason.
   */
  build(changed?: readonly string[], signal?: AbortSignal): Promise<BundleResult>;
  dispose(): Promise<void>;
}

/** A bundle beyond it would not fit a load frame comfortably, and is a mistake. */
const MAX_BUNDLE_BYTES = 12 * 1024 * 1024;

/** Most builds take less than a second; the first one of a large project, from a slow disk, some. */
export const BUILD_WITHIN_MS = 30_000;

/** Of all bundlers: builds that were too much for esbuild's process together. */
const oneByOne = openPlaces({ atOnce: 1, refusal: () => new DOMException("nobody waits for the build", "AbortError") });

/** `root`: the project's folder. `mostBytes`: of memory. */
export function openBundler(folder: string, root: string, withinMs = BUILD_WITHIN_MS, mostBytes?: number): Bundler {
  /** `service`: the process that has the context. */
  let open: { entry: string; awaiting: boolean; service: number; context: BuildContext } | null = null;
  let inputs: readonly string[] = [];
  /** Since a package's source map was found to be broken. */
  let unmapped = false;

  async function close(): Promise<void> {
    const last = open;
    open = null;
    if (last?.service === currentService()) await ask(last.context.dispose).catch(() => undefined);
  }

  async function contextFor(entry: string, awaiting: boolean): Promise<BuildContext> {
    if (open?.entry === entry && open.awaiting === awaiting && open.service === currentService()) return open.context;
    await close();
    const service = currentService();
    const options = optionsFor(folder, entry, unmapped);
    open = { entry, awaiting, service, context: await context(awaiting ? awaitingOptions(options, entry) : options) };
    return open.context;
  }

  /** Once more where esbuild's process was killed, and as often as others' builds had to be ended with it; what a source did wrong is thrown. */
  async function rebuilt(entry: string, signal: AbortSignal | undefined, awaiting = false): Promise<BuildResult> {
    const limits = { withinMs, signal, ...(mostBytes !== undefined && { mostBytes }) };
    const attempt = () => ask(async () => (await contextFor(entry, awaiting)).rebuild(), limits);
    for (let failed = false, alone = false; ; ) {
      const service = currentService();
      try {
        return await (alone ? oneByOne.hold(attempt, signal) : attempt());
      } catch (error) {
        const { errors } = error as { errors?: Message[] };
        if (errors && !unmapped && isMapBroken(errors)) {
          unmapped = true;
          await close();
          continue;
        }
        if (errors && !awaiting && mustAwait(errors)) {
          const result = await rebuilt(entry, signal, true);
          if (!requiresOne(result.metafile as Metafile, errors)) return result;
        }
        alone ||= error instanceof ServiceFull;
        if (error instanceof ServiceEnded) continue;
        if (errors || error instanceof BuildTooLong || error instanceof BuildTooLarge || signal?.aborted || failed)
          throw error;
        failed = true;
        // esbuild itself would go on asking the one that is gone.
        endService(service);
      }
    }
  }

  return {
    async build(changed = [], signal) {
      const entry = HANDLER_FILES.find((name) => existsSync(join(folder, name)));
      if (!entry) return { ok: false, problems: await missingHandler(folder), inputs };
      // esbuild would wait for a pipe's writer.
      if (statSync(join(folder, entry), { throwIfNoEntry: false })?.isFile() === false)
        return { ok: false, problems: [noFile(entry)], inputs };
      try {
        // The context would keep what it has read of them.
        if ((await Promise.all(changed.map(hasTimeSetBack))).includes(true)) await close();
        const result = await rebuilt(entry, signal);
        const metafile = result.metafile as Metafile;
        inputs = inputFiles(folder, metafile);
        // A cell evaluates it inside of a function, where `#!` is no comment.
        const code = textOf(result.outputFiles, ".js").replace(/^#!.*/, "");
        const refused = [
          ...strayImports(metafile, folder, root),
          ...garbledSources(code, metafile, folder),
          ...emptyImports(result.warnings),
        ];
        if (refused.length > 0) return { ok: false, problems: buildProblems(folder, refused), inputs };
        if (Buffer.byteLength(code) > MAX_BUNDLE_BYTES) {
          // esbuild's process would go on holding some forty times as much, and this one the buffer that it came in.
          endService(currentService());
          return { ok: false, problems: [tooLarge(entry, code, MAX_BUNDLE_BYTES)], inputs };
        }
        return { ok: true, code, map: textOf(result.outputFiles, ".map"), inputs };
      } catch (error) {
        if (error instanceof BuildTooLong) return { ok: false, problems: [tooLong(folder, entry, withinMs)], inputs };
        if (error instanceof BuildTooLarge) return { ok: false, problems: [tooMuch(entry)], inputs };
        const failed = error as { errors?: Message[] };
        if (!failed.errors) throw error;
        return { ok: false, problems: buildProblems(folder, failed.errors), inputs };
      }
    },
    dispose: close,
  };
}

function optionsFor(folder: string, entry: string, unmapped: boolean): BuildOptions {
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
    // Nobody reads it, and what a package names as its sources would be read for it, wherever on this machine that is.
    sourcesContent: false,
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
    plugins: [sdkPlugin, addonPlugin, regularFilesPlugin, ...(unmapped ? [unmappedPlugin] : [])],
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

// Of a folder that nobody may look into the contract's problem says so.
async function missingHandler(folder: string): Promise<SourceProblem[]> {
  try {
    return [noHandler(await readdir(folder))];
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [noHandler([])] : [];
  }
}
