// templates/<template>/*.hbs -> the files of a controller.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Handlebars from "handlebars";
import { stringify } from "yaml";
import { readContract } from "#contract/controller-check.ts";
import { problemLine } from "#contract/problem.ts";
import { TYPES_FILE, typesOf } from "#contract/types.ts";
import { installation } from "./installation.ts";

export const templates = {
  minimal: { summary: "A handler without any powers.", example: { name: "Ada" } },
  llm: { summary: "Asks a language model for an answer that fits a schema.", example: { text: "How do I save?" } },
  http: { summary: "Fetches from one declared host.", example: { path: "/" } },
  db: { summary: "Queries a database of magic.yaml.", example: { starts_with: "A" } },
} as const;
export type Template = keyof typeof templates;
export type Language = "ts" | "js";

export interface ControllerPlan {
  readonly name: string;
  readonly template: Template;
  readonly lang: Language;
  /** From the project's root to the controller's folder, with `/`. */
  readonly path: string;
}

/** The files of a new controller by name. */
export function renderController(plan: ControllerPlan): Map<string, string> {
  const { name, template, lang, path } = plan;
  const values = {
    name,
    // `null` and `true` are names too.
    yamlName: stringify(name).trim(),
    ext: lang,
    ts: lang === "ts",
    // As wide as the name, for what stands below it.
    pad: " ".repeat(name.length),
    path,
    toRoot: "../".repeat(path.split("/").length),
    summary: templates[template].summary,
    example: JSON.stringify(templates[template].example),
  };
  const files = new Map<string, string>();
  for (const folder of [template, "common"]) {
    for (const file of readdirSync(join(installation, "templates", folder)))
      files.set(targetName(file, lang), renderFile(`${folder}/${file}`, values));
  }
  const { contract, problems } = readContract(files.get("contract.yaml") ?? "", "contract.yaml");
  if (!contract) throw new Error(`template ${template}: ${problems.map(problemLine).join("; ")}`);
  return files.set(TYPES_FILE, typesOf(contract));
}

/** One template of `templates/`, with the values filled in. */
export function renderFile(path: string, values: Readonly<Record<string, unknown>>): string {
  const text = readFileSync(join(installation, "templates", path), "utf8");
  return Handlebars.compile(text, { noEscape: true, strict: true, knownHelpersOnly: true })(values);
}

// handler.hbs -> handler.ts, contract.yaml.hbs -> contract.yaml
function targetName(file: string, lang: Language): string {
  const name = file.replace(/\.hbs$/, "");
  return name.startsWith("handler") ? `${name}.${lang}` : name;
}
