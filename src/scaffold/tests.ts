// Runs controllers' tests with Node's own runner, each file in a process of its own; `magic/sdk` is this installation's.
import { readdirSync, realpathSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { run } from "node:test";
import { pathToFileURL } from "node:url";
import { MagicError } from "#contract/errors.ts";
import { nearest } from "#contract/suggest.ts";
import { sdkEntries } from "./installation.ts";
import { controllersIn } from "./validation.ts";

export interface TestResult {
  readonly controller: string;
  readonly name: string;
  readonly ok: boolean;
  readonly skipped: boolean;
  readonly duration_ms: number;
  readonly file: string;
  readonly line?: number;
  readonly error?: string;
}

export type TestEvent =
  | { readonly type: "result"; readonly result: TestResult }
  | { readonly type: "output"; readonly text: string };

const TEST_FILE = /\.test\.(ts|mts|js|mjs)$/;

/** The folders of the named controllers, or of all. Throws not_found with a suggestion. */
export function chooseControllers(folder: string, names: readonly string[]): string[] {
  const all = controllersIn(folder);
  if (names.length === 0) return all;
  return names.map((name) => {
    const found = all.find((path) => basename(path) === name);
    if (found) return found;
    const near = nearest(
      name,
      all.map((path) => basename(path)),
    );
    throw new MagicError("not_found", `There is no controller ${name} in ${folder}.`, {
      extra: { next: near ? `Did you mean ${near}?` : "Make one with `magic scaffold --name ...`." },
    });
  });
}

export function testFilesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => TEST_FILE.test(file))
    .map((file) => join(folder, file))
    .sort();
}

/** Runs the test files of these controllers; one event for each test as it ends. */
export async function* runTests(
  folders: readonly string[],
  root: string,
  cwd: string,
  signal: AbortSignal,
): AsyncGenerator<TestEvent> {
  const files = folders.flatMap(testFilesIn);
  const owner = (file: string | undefined) => basename(folders.find((folder) => file?.startsWith(`${folder}/`)) ?? "");
  const stream = run({
    files,
    cwd,
    signal,
    execArgv: ["--no-warnings", "--import", resolver(root)],
    isolation: "process",
  });
  for await (const { type, data } of stream as AsyncIterable<{ type: string; data: Record<string, unknown> }>) {
    if (type === "test:stdout" || type === "test:stderr") yield { type: "output", text: String(data["message"]) };
    if (type !== "test:pass" && type !== "test:fail") continue;
    const details = data["details"] as { duration_ms: number; type?: string; error?: TestError };
    const file = typeof data["file"] === "string" ? data["file"] : undefined;
    // Node tells of a file itself where it could not run, or has no tests.
    const whole = file !== undefined && (data["name"] === file || data["name"] === relative(cwd, file));
    // A suite fails by itself where its body or a hook does.
    if (details.type === "suite" && (type === "test:pass" || details.error?.failureType === "subtestsFailed")) continue;
    const line = typeof data["line"] === "number" ? data["line"] : undefined;
    const result: TestResult = {
      controller: owner(file),
      name: whole ? "(the file itself)" : String(data["name"]),
      // What is still to do may fail.
      ok: type === "test:pass" || data["todo"] !== undefined,
      skipped: data["skip"] !== undefined || data["todo"] !== undefined,
      duration_ms: Math.round(details.duration_ms * 100) / 100,
      file: file ? relative(cwd, file) : "",
      ...(line === undefined ? {} : { line }),
      ...(type === "test:fail" ? { error: reason(details.error) } : {}),
    };
    yield { type: "result", result };
  }
}

type TestError = Error & { readonly cause?: unknown; readonly failureType?: string };

function reason(error: TestError | undefined): string {
  const cause = error?.cause;
  // The frames of Node's runner are behind every test, and nobody's to look at.
  if (cause instanceof Error)
    return cause.stack?.replace(/\n\s+at [^\n]*node:(?:internal\/|async_hooks:)[^\n]*/g, "") ?? cause.message;
  if (typeof cause === "object" && cause !== null && "message" in cause) return String(cause.message);
  return String(cause ?? error?.message ?? "failed");
}

/**
 * A module, as a data: URL, that makes Node find magic/sdk in this installation, and take what imports and exports for a module
 * as the daemon's bundler does, also where a package.json around it says `"type": "commonjs"`, which `npm init` writes. Node strips
 * no types below a folder called node_modules, where a project may lie all the same. An end of the process would hide every test that
 * has not been told of yet, and is refused as it is where the controller serves.
 */
function resolver(root: string): string {
  const urls = Object.fromEntries(
    Object.entries(sdkEntries).map(([name, { code }]) => [name, pathToFileURL(code).href]),
  );
  const code = `import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
const urls = ${JSON.stringify(urls)};
process.exit = function exit() {
  const error = new Error("process.exit is not available in a controller: return or throw");
  Error.captureStackTrace(error, exit);
  throw error;
};
const root = ${JSON.stringify(`${pathToFileURL(realpathSync(root)).href}/`)};
const isOwn = (url) => url.startsWith("file:") && !(url.startsWith(root) ? url.slice(root.length - 1) : url).includes("/node_modules/");
const isModule = (url) => {
  try {
    return /^\\s*(import|export)\\b/m.test(readFileSync(new URL(url), "utf8"));
  } catch {
    return false;
  }
};
registerHooks({
  resolve(name, context, next) {
    if (urls[name]) return { url: urls[name], shortCircuit: true };
    const found = next(name, context);
    const own = /\\.[jt]s$/.test(found.url) && isOwn(found.url);
    if (!own || !found.format?.startsWith("commonjs") || !isModule(found.url)) return found;
    return { ...found, format: found.format.replace("commonjs", "module") };
  },
  load(url, context, next) {
    if (!url.includes("/node_modules/") || !/\\.m?ts$/.test(url) || !isOwn(url)) return next(url, context);
    return { format: "module", source: stripTypeScriptTypes(readFileSync(new URL(url), "utf8")), shortCircuit: true };
  },
});`;
  return `data:text/javascript,${encodeURIComponent(code)}`;
}
