// Where the cell's two programs lie. In dist/ they are built; from source they are bundled once into a temp folder, because a cell can
// read one folder and strips no types.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MagicError } from "#contract/errors.ts";
import { lazy } from "#shared/lazy.ts";

export interface CellEntries {
  readonly stageZero: string;
  readonly zygote: string;
  /** The folder that both stages may read. */
  readonly folder: string;
  /** True: they are no longer the files that this daemon began with. */
  replaced(): boolean;
}

export const cellEntries = lazy(find);

async function find(): Promise<CellEntries> {
  const stageZero = fileURLToPath(import.meta.resolve("#entry/cell-stage0"));
  const zygote = fileURLToPath(import.meta.resolve("#entry/cell-zygote"));
  if (!stageZero.endsWith(".ts")) return entriesAt(stageZero, zygote);
  const folder = mkdtempSync(join(tmpdir(), "magic-cell-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  await bundle({ "cell-stage0": stageZero, "cell-zygote": zygote }, folder);
  return entriesAt(join(folder, "cell-stage0.mjs"), join(folder, "cell-zygote.mjs"));
}

/** As often as esbuild's process is ended for the sake of a controller's build. */
async function bundle(entryPoints: Record<string, string>, outdir: string): Promise<void> {
  const { build } = await import("esbuild");
  const { ask, ServiceEnded } = await import("../bundle/service.ts");
  const options = {
    entryPoints,
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node26",
    logLevel: "silent",
  } as const;
  for (;;) {
    try {
      await ask(() => build(options));
      return;
    } catch (error) {
      if (!(error instanceof ServiceEnded)) throw error;
    }
  }
}

/** What to tell of something that could not be started (`failed`, a clause): an upgrade, or a build, may have exchanged this daemon's files. */
export async function startFailure(failed: string, why: string): Promise<MagicError> {
  const { replaced, folder } = await cellEntries();
  return replaced()
    ? new MagicError("program_replaced", `${failed}: the files in ${folder} are no longer this daemon's`)
    : new MagicError("overloaded", `${failed}: ${why}`, { retryAfterS: 1 });
}

/** Two files of one folder. */
function entriesAt(stageZero: string, zygote: string): CellEntries {
  const stamps = (): string => [stageZero, zygote].map(stampOf).join();
  const first = stamps();
  return { stageZero, zygote, folder: dirname(zygote), replaced: () => stamps() !== first };
}

function stampOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found ? `${found.ino} ${found.size} ${found.mtimeNs}` : "";
}
