// Modules that await while they load. A script that is run at once cannot: esbuild makes none of them. As a module in the body of an async
// function they can, and the bundle exports a promise of what the handler exports. What Node has itself is required there as in any bundle.
import { isBuiltin } from "node:module";
import type { BuildOptions, Message, Metafile, Plugin } from "esbuild";

/** True where that is all that is wrong. */
export function mustAwait(errors: readonly Message[]): boolean {
  return errors.length > 0 && errors.every(({ text }) => text.startsWith("Top-level await"));
}

/** True where such a module, or one that imports it, is asked for by require(), which would not wait for it. */
export function requiresOne({ inputs }: Metafile, errors: readonly Message[]): boolean {
  const late = new Set(errors.map(({ location }) => location?.file));
  // A set that grows while it is gone through hands out what was added, too.
  for (const one of late)
    for (const [name, { imports }] of Object.entries(inputs))
      if (imports.some(({ path, kind }) => path === one && kind === "import-statement")) late.add(name);
  return Object.values(inputs).some(({ imports }) =>
    imports.some(({ path, kind }) => kind === "require-call" && late.has(path)),
  );
}

export function awaitingOptions({ entryPoints: _entry, ...options }: BuildOptions, entry: string): BuildOptions {
  return {
    ...options,
    stdin: {
      contents: `import * as all from "./${entry}"; magicExports = all;`,
      resolveDir: options.absWorkingDir as string,
      sourcefile: "magic:entry",
    },
    format: "esm",
    // A function's body has none.
    define: { "import.meta": "magicMeta", ...options.define },
    // Not strict: packages are not, where nothing awaits.
    banner: { js: "module.exports = (async () => { let magicExports; const magicMeta = {};" },
    footer: { js: "return magicExports; })();" },
    plugins: [...(options.plugins ?? []), builtinPlugin],
  };
}

const builtinPlugin: Plugin = {
  name: "magic-builtins",
  setup(build) {
    build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
      if (kind === "require-call" || !isBuiltin(path)) return undefined;
      return { path, namespace: "magic", sideEffects: false };
    });
    build.onLoad({ filter: /./, namespace: "magic" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
    }));
  },
};
