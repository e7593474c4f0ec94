// docs/cli.md and docs/schema say what the code says.
import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { Command } from "commander";
import { expect, test, vi } from "vitest";
import { isNoun } from "#commands/command.ts";
import { createProgram } from "#commands/program.ts";
import { groups } from "#commands/registry.ts";
import { readContract } from "#contract/controller-check.ts";
import { errors } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { readProject } from "#contract/project-check.ts";
import { chatRequestSchema } from "#contract/wire/chat.ts";
import { errorPage, keys, schemas, schemaText } from "../../docs/generate.ts";

// Real processes on a machine that may be busy: nothing here depends on how long it takes.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");

async function commandOf(path: readonly string[]): Promise<Command | undefined> {
  const [name = "", verb = ""] = path;
  const entry = groups.map(({ commands }) => commands[name]).find(Boolean);
  const leaf = entry && isNoun(entry) ? (await entry.verbs()).verbs[verb] : entry;
  if (!leaf || isNoun(leaf)) return undefined;
  const command = new Command(path.join(" "));
  (await leaf.load()).default.configure?.(command);
  return command;
}

test("every documented command, argument and option exists, and no option is missing", async () => {
  const sections = page.split(/^\*\*`magic /m).slice(1);
  expect(sections.length).toBeGreaterThan(20);
  for (const section of sections) {
    const words = (section.split("`")[0] ?? "").split(" ").filter((word) => /^[a-z]+$/.test(word));
    const command = (await commandOf(words.slice(0, 2))) ?? (await commandOf(words.slice(0, 1)));
    expect(command, words.join(" ")).toBeDefined();
    for (const [, name] of section.matchAll(/^- `[<[]([a-z-]+)/gm))
      expect(command?.registeredArguments.map((one) => one.name())).toContain(name);
    for (const [, flags] of section.matchAll(/^- `(-[^`]+)`:/gm))
      expect(command?.options.map((option) => option.flags)).toContain(flags);
    for (const { flags, hidden } of command?.options ?? []) if (!hidden) expect(section).toContain(`- \`${flags}\`: `);
  }
});

test("help of every command fits into 80 columns", async () => {
  const paths = page.matchAll(/^\*\*`magic ([a-z]+(?: [a-z]+)?)/gm);
  for (const [, path = ""] of paths) {
    let help = "";
    const { root } = await createProgram([...path.split(" "), "--help"], (text) => {
      help += text;
    });
    await root.parseAsync([...path.split(" "), "--help"], { from: "user" }).catch(() => {});
    expect(help, path).toContain("Usage: magic");
    expect(
      help.split("\n").filter((line) => line.length > 80),
      path,
    ).toEqual([]);
  }
});

test("docs/operating.md configures what there is and calls what there is", async () => {
  const text = readFileSync(new URL("../../docs/operating.md", import.meta.url), "utf8");
  const examples = [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(
    ([, yaml = ""]) => readProject(yaml, "f").problems,
  );
  expect(examples).toEqual([[]]);
  const calls = [...text.matchAll(/\bmagic ((?:[a-z]+ ?){1,2})((?: ?--[a-z-]+(?: [^\s`-][^\s`]*)?)*)/g)];
  expect(calls.length).toBeGreaterThan(15);
  for (const [call, words = "", flags = ""] of calls) {
    const path = words.trim().split(" ");
    const command = (await commandOf(path)) ?? (await commandOf(path.slice(0, 1)));
    expect(command, call).toBeDefined();
    const known = [...(command?.options ?? []).map(({ long }) => long), "--json", "--live", "--output"];
    for (const [flag] of flags.matchAll(/--[a-z-]+/g)) expect(known, call).toContain(flag);
  }
});

// The formatter pads the columns.
const plain = (text: string) => text.replace(/ +/g, " ").replace(/-{3,}/g, "---");

test("docs/contract.md has every key, as the schemas say it (else: npm run docs)", () => {
  const kept = readFileSync(new URL("../../docs/contract.md", import.meta.url), "utf8");
  expect(plain(kept)).toContain(plain(keys()));
  for (const key of ["scopes.http[].host", "gateway.policies.NAME.candidates[].weight", "gateway.budgets[].alert_at"])
    expect(keys()).toContain(`| \`${key}\` |`);
});

test("docs/errors.md is what the catalogue says", () => {
  const kept = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  expect(plain(kept)).toBe(plain(errorPage()));
});

test("every command of the registry is documented", async () => {
  for (const { commands } of groups) {
    for (const [name, entry] of Object.entries(commands)) {
      const empty = isNoun(entry) && Object.keys((await entry.verbs()).verbs).length === 0;
      if (!empty) expect(page.includes(`\`magic ${name} `) || page.includes(`\`magic ${name}\``), name).toBe(true);
    }
  }
});

test("every exit code is documented", () => {
  for (const code of Object.values(exitCodes)) expect(page).toMatch(new RegExp(`^\\| ${code} +\\|`, "m"));
});

test.each(Object.keys(schemas) as (keyof typeof schemas)[])(
  "docs/schema/%s is what the code checks (else: npm run docs)",
  (name) => {
    expect(readFileSync(new URL(`../../docs/schema/${name}`, import.meta.url), "utf8")).toBe(schemaText(name));
  },
);

test("our schemas are schemas: nothing checks that when it is started", () => {
  const texts = (Object.keys(schemas) as (keyof typeof schemas)[]).map(schemaText);
  for (const schema of [...texts.map((text) => JSON.parse(text) as object), chatRequestSchema]) {
    const ajv = new Ajv2020({ strict: false });
    expect([ajv.validateSchema(schema), ajv.errors ?? null]).toEqual([true, null]);
  }
});

test("the examples of docs/contract.md are valid, and every code of a problem is in it", () => {
  const text = readFileSync(new URL("../../docs/contract.md", import.meta.url), "utf8");
  const example = (kind: string) => new RegExp(`^\`\`\`yaml ${kind}\\n([\\s\\S]*?)^\`\`\``, "m").exec(text)?.[1] ?? "";
  expect(readContract(example("contract"), "f").problems).toEqual([]);
  expect(readProject(example("project"), "f").problems).toEqual([]);
  const sources = ["src/contract", "src/scaffold"].flatMap((folder) => {
    const url = new URL(`../../${folder}/`, import.meta.url);
    return readdirSync(url)
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(new URL(file, url), "utf8"));
  });
  const codes = sources.flatMap((source) => [...source.matchAll(/code: "([a-z_]+)",/g)].map(([, code]) => code));
  expect(codes.length).toBeGreaterThan(10);
  for (const code of codes) expect(text).toContain(`\`${code}\``);
});

test("no code of an error stands in two sections of the catalogue", async () => {
  const folder = new URL("../../src/contract/errors/", import.meta.url);
  const sections = readdirSync(folder).filter((file) => file !== "entry.ts");
  const modules = await Promise.all(sections.map((file) => import(new URL(file, folder).href)));
  const codes = modules.flatMap((section) =>
    Object.values(section).flatMap((entries) => Object.keys(entries as object)),
  );
  expect(codes.toSorted()).toEqual(Object.keys(errors).sort());
});
