// `magic validate`: which files to check, and every problem in them. Needs no daemon.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { ControllerContract } from "#contract/controller.ts";
import { readContract } from "#contract/controller-check.ts";
import { CONTRACT_FILES, HANDLER_FILES } from "#contract/controller-files.ts";
import { MagicError } from "#contract/errors.ts";
import { toPointer } from "#contract/json-pointer.ts";
import { type Problem, sortProblems } from "#contract/problem.ts";
import type { ProjectConfig } from "#contract/project.ts";
import { readProject } from "#contract/project-check.ts";
import { type Position, readSource, type Source } from "#contract/source.ts";
import { TYPES_FILE, typesOf } from "#contract/types.ts";
import { PROJECT_FILE } from "#shared/paths.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { whereWritable, writeEditorFiles, writeIfDifferent } from "./editor.ts";
import { unservedModels } from "./unserved.ts";

export interface CheckedFile {
  readonly file: string;
  readonly kind: "project" | "contract";
  readonly name?: string;
  readonly version?: string;
}

export interface Validation {
  readonly valid: boolean;
  readonly problems: readonly Problem[];
  /** What is not wrong but will not work as it stands. */
  readonly warnings: readonly Problem[];
  readonly checked: readonly CheckedFile[];
}

interface Work {
  readonly cwd: string;
  readonly problems: Problem[];
  readonly checked: CheckedFile[];
  readonly contracts: { file: string; contract: ControllerContract }[];
  /** Files that were read without a problem, once a value in them is looked for. */
  readonly sources: Map<string, Source | undefined>;
  config: ProjectConfig | undefined;
}

/** Checks controller folders, contract files and magic.yaml; the whole project at `root` where no path is given. */
export function validatePaths(paths: readonly string[], root: string | undefined, cwd: string): Validation {
  const work: Work = { cwd, problems: [], checked: [], contracts: [], sources: new Map(), config: undefined };
  if (paths.length > 0) for (const path of paths) checkPath(resolve(cwd, path), path, work);
  else if (root !== undefined) checkProject(root, work);
  else if (contractIn(cwd)) checkController(cwd, work);
  else
    throw new MagicError("usage", `There is no ${PROJECT_FILE} here or above, and no path was given.`, {
      extra: { next: "Name a controller's folder, or make a project with `magic scaffold --name hello`." },
    });
  duplicates(work);
  return {
    valid: work.problems.length === 0,
    problems: sortProblems(work.problems),
    warnings: sortProblems([...unconfigured(work), ...unserved(work), ...closed(work), ...unfilled(work)]),
    checked: work.checked,
  };
}

function checkPath(path: string, given: string, work: Work): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new MagicError("not_found", `There is no ${given}.`, { extra: { next: "Check the path." } });
  if (found.isDirectory()) checkFolder(path, work);
  else if (/^magic\.(ya?ml|json)$/.test(basename(path))) checkConfiguration(path, work);
  else checkContract(path, work);
}

function checkFolder(folder: string, work: Work): void {
  if (contractIn(folder)) checkController(folder, work);
  else if (existsSync(join(folder, PROJECT_FILE))) checkProject(folder, work);
  else {
    const inside = controllersIn(folder);
    for (const controller of inside) checkController(controller, work);
    if (inside.length === 0)
      problem(
        work,
        join(folder, "contract.yaml"),
        "contract_missing",
        "There is no contract.yaml.",
        "Write one, or make a controller with `magic scaffold`.",
      );
  }
}

function checkProject(root: string, work: Work): void {
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory())
    throw new MagicError("not_found", `There is no folder ${root}.`, { extra: { next: "Check the path." } });
  const path = join(root, PROJECT_FILE);
  if (existsSync(path)) checkConfiguration(path, work);
  const folder = resolve(root, work.config?.controllers ?? "controllers");
  if (work.config?.controllers !== undefined && !existsSync(folder))
    work.problems.push({
      ...at(work, shown(path, work), "/controllers"),
      code: "folder_missing",
      message: `The folder ${work.config.controllers} does not exist.`,
      fix: "Make it, or correct `controllers` in magic.yaml.",
      value: work.config.controllers,
    });
  for (const controller of existsSync(folder) ? controllersIn(folder) : []) checkController(controller, work);
  const tsconfig = join(root, "tsconfig.json");
  if (existsSync(tsconfig) && readFileSync(tsconfig, "utf8").includes(".magic/tsconfig.json"))
    whereWritable(() => writeEditorFiles(root));
}

function checkConfiguration(path: string, work: Work): void {
  const { config, problems } = readProject(readPlainFile(path), shown(path, work));
  work.problems.push(...problems);
  work.checked.push({ file: shown(path, work), kind: "project" });
  work.config ??= config;
}

function checkController(folder: string, work: Work): void {
  const name = contractIn(folder);
  if (name) checkContract(join(folder, name), work);
  if (!HANDLER_FILES.some((file) => existsSync(join(folder, file))))
    problem(
      work,
      join(folder, "handler.ts"),
      "handler_missing",
      "There is no handler.ts or handler.js.",
      "Write one whose default export is `defineHandler(...)`.",
    );
}

function checkContract(path: string, work: Work): void {
  const { contract, problems } = readContract(readPlainFile(path), shown(path, work));
  work.problems.push(...problems);
  work.checked.push({
    file: shown(path, work),
    kind: "contract",
    ...(contract && { name: contract.name, version: contract.version }),
  });
  if (!contract) return;
  work.contracts.push({ file: shown(path, work), contract });
  refreshTypes(dirname(path), contract);
}

/** Brings contract.types.ts up to date where there is one. */
export function refreshTypes(folder: string, contract: ControllerContract): void {
  const path = join(folder, TYPES_FILE);
  if (existsSync(path)) whereWritable(() => writeIfDifferent(path, typesOf(contract)));
}

function duplicates(work: Work): void {
  const first = new Map<string, string>();
  for (const { file, contract } of work.contracts) {
    const other = first.get(contract.name);
    if (other !== undefined && other !== file)
      problem(
        work,
        resolve(work.cwd, file),
        "duplicate_name",
        `${other} is called \`${contract.name}\` as well.`,
        "Give one of them another name.",
      );
    first.set(contract.name, other ?? file);
  }
}

// A contract is right in itself; whether its project offers what it names is the project's matter, and may come later.
function unconfigured(work: Work): Problem[] {
  const { config } = work;
  if (!config) return [];
  return work.contracts.flatMap(({ file, contract }) => {
    const missing = (
      kind: "database" | "secret",
      names: readonly string[],
      known: object | undefined,
      fix: (name: string) => string,
    ) =>
      names.flatMap((name, index) =>
        Object.hasOwn(known ?? {}, name)
          ? []
          : {
              ...at(work, file, `/scopes/${kind === "database" ? `db/${index}/name` : `secrets/${index}`}`),
              code: `${kind}_not_configured`,
              message: `The ${kind} \`${name}\` is not in magic.yaml.`,
              fix: fix(name),
            },
      );
    const databases = contract.scopes?.db?.map(({ name }) => name) ?? [];
    return [
      ...missing("database", databases, config.databases, (name) => `Add under databases: \`${name}: { url: ... }\`.`),
      ...missing(
        "secret",
        contract.scopes?.secrets ?? [],
        config.secrets,
        (name) => `Add under secrets: \`${name}: "\${env:${name}}"\`.`,
      ),
    ];
  });
}

function unserved(work: Work): Problem[] {
  return unservedModels(work.config?.gateway ?? {}).map(({ pointer, model }) => ({
    ...at(work, projectFile(work), `/gateway${pointer}`),
    code: "unknown_name",
    message: `No provider under gateway.providers serves \`${model}\` (gateway${pointer.replaceAll("/", ".")}).`,
    fix: `Add \`${model.split("/")[0]}\` under gateway.providers, or correct the name.`,
  }));
}

// The egress guard refuses them at the first call, in the words of whoever called.
function closed(work: Work): Problem[] {
  const { gateway, egress } = work.config ?? {};
  if (!work.config) return [];
  // As a URL has them: without the port where it is http's own.
  const open = (egress?.allow_private ?? []).map(
    (pair) => URL.parse(`http://${pair}`)?.host ?? pair.replace(/:\*$/, ""),
  );
  const look = (file: string, pointer: string, url: URL | null): Problem[] => {
    if (!url || !PRIVATE.test(url.hostname)) return [];
    const pair = `${url.hostname}:${url.port || (url.protocol === "https:" ? 443 : 80)}`;
    if (open.includes(URL.parse(`http://${pair}`)?.host ?? pair) || open.includes(`${url.hostname}:*`)) return [];
    return [
      {
        ...at(work, file, pointer),
        code: "egress_blocked",
        message: `\`${pair}\` is a private address, and nothing may be sent there.`,
        fix: `Add \`"${pair}"\` under egress.allow_private in magic.yaml.`,
      },
    ];
  };
  return [
    ...Object.entries(gateway?.providers ?? {}).flatMap(([name, { base_url: url }]) =>
      url === undefined
        ? []
        : look(projectFile(work), toPointer(["gateway", "providers", name, "base_url"]), URL.parse(url)),
    ),
    ...work.contracts.flatMap(({ file, contract }) =>
      (contract.scopes?.http ?? []).flatMap(({ host, port, scheme = "https" }, index) =>
        look(file, `/scopes/http/${index}/host`, URL.parse(`${scheme}://${host}${port ? `:${port}` : ""}`)),
      ),
    ),
  ];
}

const PRIVATE =
  /^(?:(?:.+\.)?localhost|(?:127|10)\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+|\[::1\])$/i;

// `${NAME}`, as other tools' files have it, would be taken for the value itself, and be somebody's password or key.
const UNFILLED = /\$\{(?!(?:env|secret):[A-Za-z_][A-Za-z0-9_]*\})(?:[A-Za-z]+:)?([A-Za-z_][A-Za-z0-9_]*)?[^}]*\}?/;

function unfilled(work: Work): Problem[] {
  const found: Problem[] = [];
  const look = (value: unknown, path: (string | number)[]): void => {
    if (typeof value === "object" && value !== null)
      for (const [key, part] of Object.entries(value)) look(part, [...path, key]);
    const [text, name = "NAME"] = (typeof value === "string" && UNFILLED.exec(value)) || [];
    if (text !== undefined)
      found.push({
        ...at(work, projectFile(work), toPointer(path)),
        code: "bad_form",
        message: `\`${text}\` is taken as it stands: nothing fills it in.`,
        fix: `Write \`\${env:${name}}\` for a variable of the environment.`,
      });
  };
  look(work.config, []);
  return found;
}

function projectFile({ checked }: Work): string {
  return checked.find(({ kind }) => kind === "project")?.file ?? PROJECT_FILE;
}

/** Where a file that was read without a problem has the value at the pointer. */
function at(work: Work, file: string, pointer: string): Position & { file: string; pointer: string } {
  // Once: a file may have thousands of warnings.
  if (!work.sources.has(file)) work.sources.set(file, readSource(readPlainFile(resolve(work.cwd, file)), file).source);
  return { file, ...(work.sources.get(file)?.locate(pointer) ?? { line: 1, column: 1 }), pointer };
}

export function contractIn(folder: string): string | undefined {
  return CONTRACT_FILES.find((file) => existsSync(join(folder, file)));
}

/** The controllers' folders in a folder, by name. */
export function controllersIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .map((name) => join(folder, name))
    .filter((path) => contractIn(path) || HANDLER_FILES.some((file) => existsSync(join(path, file))))
    .sort();
}

function problem(work: Work, path: string, code: string, message: string, fix: string): void {
  work.problems.push({ file: shown(path, work), line: 1, column: 1, pointer: "", code, message, fix });
}

function shown(path: string, { cwd }: Work): string {
  const short = relative(cwd, path);
  return short.startsWith("..") || short === "" ? path : short;
}
