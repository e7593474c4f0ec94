// esbuild's messages, and what else a build is refused for, as problems at their place, each with what to do.
import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { Message } from "esbuild";
import { missingHandler } from "#contract/controller-files.ts";
import type { SourceProblem } from "#contract/wire/controllers.ts";
import { packageOf } from "./policy.ts";
import { placeAt } from "./reach.ts";

/** The end of what esbuild says of an import from an empty file. */
const NO_EXPORTS = "has no exports";

export function buildProblems(folder: string, messages: readonly Message[]): SourceProblem[] {
  // Modules may await where nothing else is wrong.
  const others = messages.filter(({ text }) => !text.startsWith("Top-level await"));
  return (others.length > 0 ? others : messages).map((message) => ({
    file: message.location ? relative(folder, resolve(folder, message.location.file)) : "handler",
    line: message.location?.line ?? 1,
    column: (message.location?.column ?? 0) + 1,
    pointer: "",
    code: "build_failed",
    message: message.text,
    fix: fixFor(message.text),
  }));
}

/**
 * Names of an empty file, as one that is being saved: they would be undefined. A package may look for them, and whoever takes a module as a
 * whole for what it may not have.
 */
export function emptyImports(warnings: readonly Message[]): Message[] {
  return warnings.filter(
    ({ text, location }) => text.endsWith(NO_EXPORTS) && packageOf(location?.file ?? "") === undefined,
  );
}

function fixFor(text: string): string {
  const missing = /^Could not resolve "([^"]+)"/.exec(text)?.[1];
  if (missing && /^[./]/.test(missing)) return "Correct the path, or make the file.";
  if (missing?.includes(":")) return "Import a file by its relative path, or a package by its name.";
  if (missing?.startsWith("#")) return "Add it to `imports` in package.json.";
  // Not a file in it: `a/b` would be a repository of GitHub's.
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(missing ?? "") ?? [];
  if (name) return `Run \`npm install ${name}\` where the controller's package.json is.`;
  if (text.includes("native addon")) return "Use a package in plain JavaScript or WebAssembly.";
  if (text.startsWith("No loader is configured"))
    return 'Add `with { type: "text" }` to the import, or `with { type: "bytes" }`.';
  if (text.startsWith("a bundle takes no data")) return "Copy the file into the controller's folder.";
  if (text.endsWith("is not UTF-8") || /^Unexpected "\\x/.test(text))
    return 'Save the file as UTF-8, or import it with `with { type: "bytes" }`.';
  if (text.startsWith("No matching export") || text.endsWith(NO_EXPORTS))
    return "Import a name that the module exports.";
  if (/top-level await/i.test(text))
    return "Import the module instead of require(), or move the await into a function.";
  if (text.includes("is not for handlers")) return 'Import defineHandler and reply from "magic/sdk".';
  return "Correct the source at this line.";
}

/** Of a file. */
const START = { line: 1, column: 1, pointer: "" } as const;

export function noHandler(files: readonly string[]): SourceProblem {
  return { ...missingHandler(files), ...START, code: "handler_missing" };
}

export function noFile(entry: string): SourceProblem {
  const message = `${entry} is not a regular file.`;
  return { ...START, file: entry, code: "build_failed", message, fix: "Put the handler's source there." };
}

/** `import(`./a/${b}.json`)` or `require("./a/" + b)`. */
const VARIABLE_PATH = /\b(?:import|require)\s*\(\s*(?:`\.[^`]*\$\{|["']\.[^"'\n]*["']\s*\+)/;

export function tooLong(folder: string, entry: string, withinMs: number): SourceProblem {
  const file = join(folder, entry);
  const source = existsSync(file) ? readFileSync(file, "utf8") : "";
  const { line, column } = placeAt(source, source.search(VARIABLE_PATH));
  return {
    ...START,
    file: entry,
    line,
    column: column + 1,
    code: "build_timeout",
    message: `The build took longer than ${withinMs / 1000} s.`,
    fix: 'Let a path with variable parts begin in a small folder, as "./tables/" + name does: all that lies below is looked through. Or import less.',
  };
}

export function tooMuch(entry: string): SourceProblem {
  const message = "The build takes gigabytes of memory.";
  const fix = "Import less; a source, or the source map that it names, may be a device that is read without end.";
  return { ...START, file: entry, code: "build_failed", message, fix };
}

export function tooLarge(entry: string, code: string, most: number): SourceProblem {
  return {
    ...START,
    file: entry,
    code: "bundle_too_large",
    message: `The bundle has ${Buffer.byteLength(code)} bytes, more than ${most}.`,
    fix: "Import less, or a smaller package.",
  };
}
