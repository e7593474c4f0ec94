// Every command of the registry with --json, its stdout a pipe: one JSON document or nothing, and never a control byte.
import { Command } from "commander";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isNoun } from "#commands/command.ts";
import { groups } from "#commands/registry.ts";
import { isJson } from "#shared/json-text.ts";
import { CONTROL, createSandbox, type Outcome, type Sandbox } from "./magic.ts";

let box: Sandbox;
beforeAll(async () => {
  box = createSandbox();
  await box.magic(["scaffold", "--name", "hello"]);
  await box.magic(["config", "set", "daemon.port", "0"]);
  await box.magic(["daemon", "start"]);
});
afterAll(() => box.dispose());

/** Arguments that let a command do its work; the others get a name that does not exist wherever they need one. */
const given: Readonly<Record<string, readonly string[]>> = {
  scaffold: ["--name", "second"],
  test: ["hello"],
  build: ["hello"],
  deploy: ["hello"],
  invoke: ["hello", "--input", '{"name":"Ada"}'],
  "config get": [],
  "config set": ["environment", "sandbox"],
  completion: ["bash"],
};
/** dev and connector eval are streams of lines; demo has a test of its own; stopping the daemon would change what the others see. */
const elsewhere = new Set(["dev", "demo", "daemon stop", "daemon restart", "connector eval"]);

async function everyCommand(): Promise<string[][]> {
  const lines: string[][] = [];
  for (const group of groups) {
    for (const [name, entry] of Object.entries(group.commands)) {
      const leaves = isNoun(entry)
        ? Object.entries((await entry.verbs()).verbs).map(([verb, leaf]) => [`${name} ${verb}`, leaf] as const)
        : [[name, entry] as const];
      for (const [path, leaf] of leaves) {
        if (elsewhere.has(path)) continue;
        const command = new Command("x");
        (await leaf.load()).default.configure?.(command);
        const needed = command.registeredArguments.filter(({ required }) => required).map(() => "nosuch");
        lines.push([...path.split(" "), ...(given[path] ?? needed), "--json"]);
      }
    }
  }
  return lines;
}

test("one document on stdout, or an error document on stderr's last line", async () => {
  const lines = await everyCommand();
  expect(lines.length).toBeGreaterThan(30);
  const run = async (args: string[]) => [args, await box.magic(args)] as const;
  const outcomes: (readonly [string[], Outcome])[] = [];
  for (let at = 0; at < lines.length; at += 4) outcomes.push(...(await Promise.all(lines.slice(at, at + 4).map(run))));
  const wrong = outcomes.flatMap(([args, outcome]) => {
    const problem = problemOf(outcome);
    return problem === undefined
      ? []
      : [`magic ${args.join(" ")}: ${problem} ${JSON.stringify(outcome).slice(0, 600)}`];
  });
  expect(wrong).toEqual([]);
}, 300_000);

test("a list of nothing is an empty one", async () => {
  for (const args of [
    ["audit", "export", "--action", "nosuch"],
    ["logs", "--request", "nosuch"],
  ])
    expect((await box.magic([...args, "--json"])).stdout).toBe("[]\n");
});

function problemOf({ code, stdout, stderr }: Outcome): string | undefined {
  if (CONTROL.test(stdout)) return "control bytes on stdout";
  if (code < 0) return "it did not end";
  if (stdout !== "") return isJson(stdout) ? undefined : "stdout is not one JSON document";
  if (code === 0) return "exit code 0 without a document";
  const last = stderr.trim().split("\n").at(-1) ?? "";
  if (!isJson(last)) return "stderr does not end with a JSON document";
  const { code: name, detail, exit_code } = JSON.parse(last);
  if (typeof name !== "string" || typeof detail !== "string") return "the error document lacks code or detail";
  return exit_code === code ? undefined : "exit_code is not the exit code";
}
