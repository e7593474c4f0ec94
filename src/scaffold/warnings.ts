// What is not wrong in any file of a project, but will not work as it stands: what its files say does not fit together.
import { resolve } from "node:path";
import { brief } from "#contract/check.ts";
import type { ControllerContract } from "#contract/controller.ts";
import { env, otherReference } from "#contract/env-reference.ts";
import { toPointer } from "#contract/json-pointer.ts";
import { formatNames } from "#contract/json-schema/compilers.ts";
import { walk } from "#contract/json-schema/walk.ts";
import type { Problem } from "#contract/problem.ts";
import type { ProjectConfig } from "#contract/project.ts";
import { sandboxModels } from "#contract/project-gateway.ts";
import { MAX_PROBLEMS, type Position, readSource, type Source } from "#contract/source.ts";
import { PROJECT_FILE } from "#shared/paths.ts";
import { readPlainFile } from "#shared/plain-file.ts";
import { unservedModels } from "./unserved.ts";

/** What was read without a problem. `config` undefined: no magic.yaml. */
export interface Read {
  readonly cwd: string;
  readonly checked: readonly { readonly file: string; readonly kind: "project" | "contract" }[];
  readonly contracts: readonly { readonly file: string; readonly contract: ControllerContract }[];
  readonly config: ProjectConfig | undefined;
  /** Files, once a value in them is looked for. */
  readonly sources: Map<string, Source | undefined>;
}

export function warningsOf(read: Read): Problem[] {
  return [
    ...emptied(read),
    ...unconfigured(read),
    ...unserved(read),
    ...closed(read),
    ...unfilled(read),
    ...unchecked(read),
  ];
}

// Every default, as somebody may want it who marks a root; or a disk was full while the file was saved.
function emptied(read: Read): Problem[] {
  if (!read.config || Object.keys(read.config).length > 0) return [];
  const file = projectFile(read);
  if (String(readPlainFile(resolve(read.cwd, file))).trim() !== "") return [];
  const message = "The file is empty: every setting has its default.";
  return [{ ...placeIn(read, file, ""), code: "empty", message, fix: "Write `version: 1` into it if that is meant." }];
}

// A contract is right in itself; whether its project offers what it names is the project's matter, and may come later.
function unconfigured(read: Read): Problem[] {
  const { config } = read;
  if (!config) return [];
  return read.contracts.flatMap(({ file, contract }) => {
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
              ...placeIn(read, file, `/scopes/${kind === "database" ? `db/${index}/name` : `secrets/${index}`}`),
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

function unserved(read: Read): Problem[] {
  return unservedModels(read.config?.gateway ?? {}).map(({ pointer, model }) => ({
    ...placeIn(read, projectFile(read), `/gateway${pointer}`),
    code: "unknown_name",
    message: `No provider under gateway.providers serves \`${model}\` (gateway${pointer.replaceAll("/", ".")}).`,
    fix: model.startsWith("sandbox/")
      ? `The sandbox has ${sandboxModels.map((one) => `\`sandbox/${one}\``).join(" and ")}.`
      : model.includes("/")
        ? `Add \`${model.split("/")[0]}\` under gateway.providers, or correct the name.`
        : "Name a model as `provider/model`, or a policy or an alias of this file.",
  }));
}

// The egress guard refuses them at the first call, in the words of whoever called.
function closed(read: Read): Problem[] {
  const { gateway, egress } = read.config ?? {};
  if (!read.config) return [];
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
        ...placeIn(read, file, pointer),
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
        : look(projectFile(read), toPointer(["gateway", "providers", name, "base_url"]), URL.parse(url)),
    ),
    ...read.contracts.flatMap(({ file, contract }) =>
      (contract.scopes?.http ?? []).flatMap(({ host, port, scheme = "https" }, index) =>
        look(file, `/scopes/http/${index}/host`, URL.parse(`${scheme}://${host}${port ? `:${port}` : ""}`)),
      ),
    ),
  ];
}

const PRIVATE =
  /^(?:(?:.+\.)?localhost|(?:127|10)\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+|\[::1\])$/i;

function unfilled(read: Read): Problem[] {
  const found: Problem[] = [];
  const look = (value: unknown, path: (string | number)[]): void => {
    if (typeof value === "object" && value !== null)
      for (const [key, part] of Object.entries(value)) look(part, [...path, key]);
    const other = typeof value === "string" ? otherReference(value) : undefined;
    if (other)
      found.push({
        ...placeIn(read, projectFile(read), toPointer(path)),
        code: "bad_form",
        message: `\`${other.written}\` is taken as it stands: nothing fills it in.`,
        fix: `Write \`${env(other.name)}\` for a variable of the environment.`,
      });
  };
  look(read.config, []);
  return found;
}

// JSON Schema takes a format that it does not know for an annotation, and a double is all that a number becomes.
function unchecked(read: Read): Problem[] {
  return read.contracts.flatMap(({ file, contract }) =>
    (["input_schema", "output_schema"] as const).flatMap((key) => {
      const formats: Problem[] = [];
      const numbers: Problem[] = [];
      const base = toPointer([key]);
      walk(contract[key], base, ({ format }, at) => {
        if (typeof format !== "string" || formatNames().includes(format) || formats.length === MAX_PROBLEMS) return;
        formats.push({
          ...placeIn(read, file, `${at}/format`),
          code: "unknown_format",
          message: `The format \`${brief(format)}\` is none of JSON Schema's: no value is checked against it.`,
          fix: "Add a `pattern`, or leave the format out.",
        });
      });
      for (const [pointer, rounded] of largeNumbers(contract[key], base)) {
        if (numbers.length === MAX_PROBLEMS) break;
        const place = placeIn(read, file, pointer);
        const written = read.sources.get(file)?.written(pointer) ?? "";
        if (!/^[-+]?\d+$/.test(written) || BigInt(written) === BigInt(rounded)) continue;
        numbers.push({
          ...place,
          code: "out_of_range",
          message: `\`${written}\` is read as ${BigInt(rounded)}: integers beyond 2^53 are not exact.`,
          fix: "Write one that is, or let the value be a string of digits.",
        });
      }
      return [...formats, ...numbers];
    }),
  );
}

function* largeNumbers(value: unknown, at: string): Generator<[pointer: string, number: number]> {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) yield [at, value];
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value)) yield* largeNumbers(part, at + toPointer([key]));
}

function projectFile({ checked }: Read): string {
  return checked.find(({ kind }) => kind === "project")?.file ?? PROJECT_FILE;
}

/** Where a file that was read without a problem has the value at the pointer. */
export function placeIn(read: Read, file: string, pointer: string): Position & { file: string; pointer: string } {
  // Once: a file may have thousands of warnings.
  if (!read.sources.has(file)) read.sources.set(file, readSource(readPlainFile(resolve(read.cwd, file)), file).source);
  return { file, ...(read.sources.get(file)?.locate(pointer) ?? { line: 1, column: 1 }), pointer };
}
