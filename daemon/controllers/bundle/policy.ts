// What may go into a bundle: JavaScript, TypeScript, JSON, npm packages; `magic/sdk` of this installation; no native addons.
import type { Plugin } from "esbuild";
import { sdkText } from "./sdk.ts";

/** Packages whose only purpose is to load a native addon. */
const ADDON_LOADERS =
  /^(bindings|node-gyp-build|node-gyp-build-optional-packages|@mapbox\/node-pre-gyp|prebuild-install)$/;

export const sdkPlugin: Plugin = {
  name: "magic-sdk",
  setup(build) {
    build.onResolve({ filter: /^magic\/sdk$/ }, () => ({ path: "sdk", namespace: "magic", sideEffects: false }));
    build.onLoad({ filter: /^sdk$/, namespace: "magic" }, async () => ({ contents: await sdkText(), loader: "js" }));
    build.onResolve({ filter: /^magic\// }, ({ path }) => ({
      errors: [{ text: `${path} is not for handlers: import from "magic/sdk"` }],
    }));
  },
};

export const addonPlugin: Plugin = {
  name: "magic-native-addons",
  setup(build) {
    build.onResolve({ filter: /\.node$/ }, ({ path, importer }) => refuse(path, importer));
    build.onResolve({ filter: ADDON_LOADERS }, ({ path, importer }) => refuse(path, importer));
  },
};

function refuse(path: string, importer: string) {
  const owner = packageOf(importer) ?? packageOf(path) ?? path;
  return {
    errors: [{ text: `the package "${owner}" loads a native addon (${path}), which a cell cannot run` }],
  };
}

/** `@scope/name` or `name` of a file below node_modules. */
export function packageOf(path: string): string | undefined {
  return /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(path)?.[1]?.replaceAll("\\", "/");
}
