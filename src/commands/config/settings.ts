// Where a setting's value comes from: flag > environment (MAGIC_*) > project magic.yaml > user configuration > default.
import { join } from "node:path";
import { MagicError } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import { ProjectConfig } from "#contract/project.ts";
import { DEFAULT_PORT } from "#contract/protocol.ts";
import { nearest } from "#contract/suggest.ts";
import { formats } from "#output/output.ts";
import { PROJECT_FILE } from "#shared/paths.ts";
import { projectOf } from "#shared/project-file.ts";
import { readUserConfig, userConfigPath } from "#shared/user-config.ts";
import type { GlobalOptions } from "../command.ts";

export interface Setting {
  readonly summary: string;
  /** The environment variable that overrides it. */
  readonly variable?: string;
  /** The flag that overrides everything. */
  readonly flag?: string;
  readonly values?: readonly string[];
  readonly preset?: string | number | boolean;
}

/** Settings of the command line itself; `config set` keeps them in the user's configuration. */
export const userSettings: Readonly<Record<string, Setting>> = {
  output: {
    summary: "the form of what is printed",
    variable: "MAGIC_OUTPUT",
    flag: "--output",
    values: formats,
    preset: "text",
  },
  environment: {
    summary: "sandbox or live",
    variable: "MAGIC_ENVIRONMENT",
    flag: "--live",
    values: ["sandbox", "live"],
    preset: "sandbox",
  },
  url: { summary: "another daemon than the project's own", variable: "MAGIC_URL", flag: "--url" },
};

/** What stands for a key of magic.yaml that is not set; only those whose default people ask for. */
const projectPresets: Readonly<Record<string, string | number>> = {
  "daemon.host": "127.0.0.1",
  "daemon.port": DEFAULT_PORT,
  controllers: "controllers",
  "environment.tier": "starter",
  "auth.access_token_ttl_s": 900,
};

export type Origin = "flag" | "environment" | "project" | "user" | "default";

export interface Resolved {
  readonly key: string;
  readonly value: unknown;
  readonly origin: Origin;
  /** The flag, variable or file that says so. */
  readonly source: string | null;
}

export interface Surroundings {
  /** The project's folder; undefined outside of one. */
  readonly root: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly globals: GlobalOptions;
  /** Words of the command line, to see which flags were given. */
  readonly argv: readonly string[];
}

/** A key of magic.yaml by its parts. The names of models hold dots. */
export function pathOf(key: string): string[] {
  const [, priced, price] =
    /^gateway\.prices\.(.+?)(?:\.(input|output|cache_read|cache_write|reasoning|long_prompts))?$/.exec(key) ?? [];
  if (priced !== undefined) return ["gateway", "prices", priced, ...(price === undefined ? [] : [price])];
  const [, alias] = /^gateway\.models\.aliases\.(.+)$/.exec(key) ?? [];
  return alias === undefined ? key.split(".") : ["gateway", "models", "aliases", alias];
}

/** Every setting that has a value. */
export function allSettings(around: Surroundings): Resolved[] {
  const project = flatten(projectValues(around.root));
  const keys = new Set([...Object.keys(userSettings), ...Object.keys(projectPresets), ...project.keys()]);
  return [...keys].sort().flatMap((key) => resolve(key, around, project) ?? []);
}

/** One setting, or a whole part of magic.yaml. Throws not_found with a suggestion for a key that does not exist. */
export function oneSetting(key: string, around: Surroundings): Resolved {
  const project = flatten(projectValues(around.root));
  const found = resolve(key, around, project);
  if (found) return found;
  const part = pathOf(key).reduce<unknown>(
    (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined),
    projectValues(around.root),
  );
  if (part !== undefined) return { key, value: part, origin: "project", source: projectPath(around.root) };
  const known = [
    ...Object.keys(userSettings),
    ...Object.keys(projectPresets),
    ...project.keys(),
    ...Object.keys(ProjectConfig.properties),
  ];
  const near = nearest(key, known);
  if (known.includes(key))
    throw new MagicError("not_found", `${key} is not set, and has no default.`, {
      extra: { next: `Set it with \`magic config set ${key} VALUE\`.` },
    });
  throw new MagicError("not_found", `There is no setting ${key}.`, {
    extra: { next: near ? `Did you mean ${near}?` : "`magic config get` lists them." },
  });
}

function resolve(key: string, around: Surroundings, project: ReadonlyMap<string, unknown>): Resolved | undefined {
  const { env, globals, root } = around;
  const setting = Object.hasOwn(userSettings, key) ? userSettings[key] : undefined;
  if (!setting) {
    if (project.has(key)) return { key, value: project.get(key), origin: "project", source: projectPath(root) };
    const preset = Object.hasOwn(projectPresets, key) ? projectPresets[key] : undefined;
    return preset === undefined ? undefined : { key, value: preset, origin: "default", source: null };
  }
  const flag = flagValue(key, globals, around.argv);
  if (flag !== undefined) return { key, value: flag, origin: "flag", source: setting.flag ?? null };
  const variable = setting.variable === undefined ? undefined : env[setting.variable];
  if (variable) return { key, value: variable, origin: "environment", source: setting.variable ?? null };
  const user = readUserConfig(env)[key];
  if (user !== undefined) return { key, value: user, origin: "user", source: userConfigPath(env) };
  return setting.preset === undefined ? undefined : { key, value: setting.preset, origin: "default", source: null };
}

function flagValue(key: string, globals: GlobalOptions, argv: readonly string[]): unknown {
  const given = (flag: string) => argv.some((word) => word === flag || word.startsWith(`${flag}=`));
  if (key === "output" && (given("--output") || given("--json"))) return globals.format;
  if (key === "environment" && given("--live")) return "live";
  return key === "url" && given("--url") ? globals.url : undefined;
}

function projectPath(root: string | undefined): string {
  return join(root ?? "", PROJECT_FILE);
}

// A file that is not valid has no values.
function projectValues(root: string | undefined): Record<string, unknown> {
  return root === undefined ? {} : projectOf(root);
}

function flatten(values: Record<string, unknown>, prefix = ""): Map<string, unknown> {
  const flat = new Map<string, unknown>();
  for (const [name, value] of Object.entries(values)) {
    const key = prefix + name;
    if (isObject(value)) for (const [inner, leaf] of flatten(value, `${key}.`)) flat.set(inner, leaf);
    else flat.set(key, value);
  }
  return flat;
}
