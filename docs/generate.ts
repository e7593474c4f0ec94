// Brings the parts of docs/ up to date that are made from the code: JSON Schemas, the reference in cli.md, the connectors' pages.
//   npm run docs
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { type CommandEntry, isNoun } from "#commands/command.ts";
import { groups } from "#commands/registry.ts";
import { ControllerContract } from "#contract/controller.ts";
import { ProjectConfig } from "#contract/project.ts";
import { connectorPages } from "./connector-pages.ts";

const folder = import.meta.dirname;

export const schemas = { "controller.json": ControllerContract, "project.json": ProjectConfig } as const;

/** The text of a published schema. */
export function schemaText(name: keyof typeof schemas): string {
  return `${JSON.stringify(schemas[name], null, 2)}\n`;
}

/** The reference of every command, from the registry. */
export async function reference(): Promise<string> {
  const parts: string[] = [];
  for (const { heading, commands } of groups) {
    parts.push(`### ${heading.replace(/:$/, "")}`);
    for (const [name, entry] of Object.entries(commands)) {
      const leaves: [string, CommandEntry][] = isNoun(entry)
        ? Object.entries((await entry.verbs()).verbs).map(([verb, leaf]) => [`${name} ${verb}`, leaf])
        : [[name, entry]];
      for (const [path, leaf] of leaves) parts.push(await section(path, leaf));
    }
  }
  return parts.join("\n\n");
}

async function section(path: string, entry: CommandEntry): Promise<string> {
  const command = new Command(path);
  (await entry.load()).default.configure?.(command);
  const args = command.registeredArguments.map((one) => {
    const name = one.variadic ? `${one.name()}...` : one.name();
    return one.required ? `<${name}>` : `[${name}]`;
  });
  const usage = ["magic", path, ...args].join(" ");
  const options = command.options
    .filter(({ hidden }) => !hidden)
    .map(({ flags, description }) => `- \`${flags}\`: ${description.replaceAll("|", "\\|")}`);
  return [`**\`${usage}\`** ${entry.summary}.`, ...(options.length > 0 ? ["", ...options] : [])].join("\n");
}

export const BEGIN = "<!-- reference: made by npm run docs -->";
export const END = "<!-- end of reference -->";

if (import.meta.main) {
  mkdirSync(join(folder, "schema"), { recursive: true });
  for (const name of Object.keys(schemas) as (keyof typeof schemas)[])
    writeFileSync(join(folder, "schema", name), schemaText(name));
  const page = join(folder, "cli.md");
  const text = readFileSync(page, "utf8");
  const [before] = text.split(BEGIN);
  const after = text.split(END)[1] ?? "\n";
  writeFileSync(page, `${before}${BEGIN}\n\n${await reference()}\n\n${END}${after}`);
  mkdirSync(join(folder, "connectors"), { recursive: true });
  for (const [name, text] of await connectorPages()) writeFileSync(join(folder, "connectors", name), text);
}
