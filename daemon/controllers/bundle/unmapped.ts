// Packages whose source maps are broken (cut off, not JSON): esbuild refuses to build what it could do without.
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Message, Plugin } from "esbuild";
import { WITHOUT_WAITING } from "#shared/plain-file.ts";

/** True where a source map is at fault. */
export function isMapBroken(errors: readonly Message[]): boolean {
  return errors.some(({ text }) => text.includes("in source map"));
}

const LINK = /^[ \t]*\/\/[#@][ \t]*sourceMappingURL=.*$/gm;

/** JavaScript as it is: its own lines are those that a stack names. */
export const unmappedPlugin: Plugin = {
  name: "magic-unmapped",
  setup(build) {
    build.onLoad({ filter: /\.[cm]?js$/, namespace: "file" }, async ({ path, with: attributes }) => {
      // As text or bytes it stays what it is; a pipe is esbuild's to wait for.
      if (attributes["type"] !== undefined || statSync(path, { throwIfNoEntry: false })?.isFile() !== true)
        return undefined;
      const text = await readFile(path, { encoding: "utf8", flag: WITHOUT_WAITING });
      return { contents: text.replace(LINK, "//"), loader: "default" };
    });
  },
};
