// `magic/sdk` as a controller's bundle holds it: this installation's, so that a scaffolded controller needs no npm install of its own.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { lazy } from "#shared/lazy.ts";
import { ask } from "./service.ts";

/** The SDK as one module, the same text wherever magic is installed: bundles stay reproducible. */
export const sdkText = lazy(bundleSdk);

async function bundleSdk(): Promise<string> {
  const result = await ask(() =>
    build({
      entryPoints: [sdkFile()],
      bundle: true,
      write: false,
      format: "esm",
      target: "node26",
      legalComments: "none",
      minifyWhitespace: true,
      logLevel: "silent",
    }),
  );
  return result.outputFiles[0]?.text ?? "";
}

/** dist/sdk.js where this runs from dist/, the source where it runs from source. */
function sdkFile(): string {
  const folder = fileURLToPath(new URL(".", import.meta.resolve("#entry/cell-zygote")));
  const built = join(folder, "sdk.js");
  return existsSync(built) ? built : join(folder, "..", "..", "src", "sdk", "index.ts");
}
