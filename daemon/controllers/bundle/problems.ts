// esbuild's messages as problems at their place, each with what to do.
import { relative, resolve } from "node:path";
import type { Message } from "esbuild";
import type { SourceProblem } from "#contract/wire/controllers.ts";

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

function fixFor(text: string): string {
  const missing = /^Could not resolve "([^"]+)"/.exec(text)?.[1];
  if (missing?.startsWith(".")) return "Correct the path, or make the file.";
  if (missing?.startsWith("#")) return "Add it to `imports` in package.json.";
  if (missing) return `Run \`npm install ${missing}\` where the controller's package.json is.`;
  if (text.includes("native addon")) return "Use a package in plain JavaScript or WebAssembly.";
  if (text.startsWith("No loader is configured"))
    return 'Add `with { type: "text" }` to the import, or `with { type: "bytes" }`.';
  if (text.startsWith("a bundle takes no data")) return "Copy the file into the controller's folder.";
  if (text.startsWith("No matching export")) return "Import a name that the module exports.";
  if (/top-level await/i.test(text))
    return "Import the module instead of require(), or move the await into a function.";
  if (text.includes("is not for handlers")) return 'Import defineHandler and reply from "magic/sdk".';
  return "Correct the source at this line.";
}
