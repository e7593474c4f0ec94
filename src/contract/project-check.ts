// Reads and checks magic.yaml: the schema first, then what no schema can say (names that must exist elsewhere in the file).
import { checkAgainst } from "./check.ts";
import { toPointer } from "./json-pointer.ts";
import { type Problem, sortProblems } from "./problem.ts";
import type { ProjectConfig } from "./project.ts";
import { type ProviderConfig, providerTypes } from "./project-gateway.ts";
import { providerFaults } from "./provider-faults.ts";
import { readSource, type Source } from "./source.ts";
import { nearest } from "./suggest.ts";
import * as validators from "./validators.ts";

export interface ProjectReading {
  /** Undefined where there is any problem. */
  readonly config: ProjectConfig | undefined;
  readonly problems: readonly Problem[];
}

/** The text of magic.yaml (YAML or JSON) as a configuration, or every problem in it. `${env:...}` is left as it is written. */
export function readProject(content: string | Uint8Array, file: string): ProjectReading {
  if (isBlank(content)) return { config: {}, problems: [] };
  const { source, problems } = readSource(content, file);
  if (!source) return { config: undefined, problems };
  const found = [...problems, ...checkAgainst(source, validators.project)];
  if (found.length === 0) found.push(...references(source, source.value as ProjectConfig));
  const sorted = sortProblems(found);
  return { config: sorted.length === 0 ? (source.value as ProjectConfig) : undefined, problems: sorted };
}

// A file that is empty (`touch magic.yaml` marks a root), or all of whose lines were commented out, is a project with every default.
function isBlank(content: string | Uint8Array): boolean {
  const text = String(typeof content === "string" ? content : Buffer.from(content));
  return text.split("\n").every((line) => /^\s*(#|$)/.test(line));
}

function references(source: Source, config: ProjectConfig): Problem[] {
  const gateway = config.gateway ?? {};
  const problems: Problem[] = [];
  const add = (pointer: string, code: string, message: string, fix: string, value?: unknown) =>
    problems.push({
      file: source.file,
      ...source.locate(pointer),
      pointer,
      code,
      message,
      fix,
      ...(value === undefined ? {} : { value }),
    });
  for (const [name, { url, connection }] of Object.entries(config.databases ?? {}))
    if ((url === undefined) === (connection === undefined))
      add(
        toPointer(["databases", name]),
        "database_incomplete",
        `The database \`${name}\` needs either \`url\` or \`connection\`.`,
        `Write \`url: "\${env:DATABASE_URL}"\`, or \`connection: \` and the id of a live connection.`,
      );
  for (const [name, provider] of Object.entries(gateway.providers ?? {})) {
    for (const [message, fix] of providerGaps(name, provider))
      add(toPointer(["gateway", "providers", name]), "provider_incomplete", message, fix);
    for (const { path, problem, fix } of providerFaults(provider))
      add(toPointer(["gateway", "providers", name, ...path]), "bad_form", `\`${path.at(-1)}\` ${problem}.`, fix);
  }
  const aliases = gateway.models?.aliases ?? {};
  for (const start of Object.keys(aliases)) {
    const seen = new Set([start]);
    for (let next = aliases[start]; next !== undefined && next in aliases; next = aliases[next]) {
      if (seen.has(next)) {
        add(
          toPointer(["gateway", "models", "aliases", start]),
          "alias_cycle",
          `The alias \`${start}\` leads back to itself.`,
          "Point it at a model.",
          aliases[start],
        );
        break;
      }
      seen.add(next);
    }
  }
  const policies = gateway.policies ?? {};
  const known = [...Object.keys(policies), ...Object.keys(aliases)];
  const named = gateway.default;
  if (
    named !== undefined &&
    gateway.policies !== undefined &&
    !named.includes("/") &&
    !known.includes(named) &&
    nearest(named, known)
  )
    add(
      "/gateway/default",
      "unknown_name",
      `\`${named}\` is neither a policy nor an alias.`,
      `Did you mean \`${nearest(named, known)}\`?`,
      named,
    );
  return problems;
}

// A provider with a name of its own must say what it speaks and where it is.
function providerGaps(name: string, provider: ProviderConfig): [message: string, fix: string][] {
  const type = provider.type ?? providerTypes.find((known) => known === name);
  if (!type) {
    const near = nearest(name, providerTypes);
    const slip = near ? ` Or did you mean \`${near}\`?` : "";
    return [
      [
        `The provider \`${name}\` has no type.`,
        `Add \`type: openai\` (or ${providerTypes.slice(1).join(", ")}).${slip}`,
      ],
    ];
  }
  const gaps: [string, string][] = [];
  if (type === "openai" && name !== "openai" && !provider.base_url)
    gaps.push([`The provider \`${name}\` has no base_url.`, "Add `base_url: http://HOST:PORT/v1`."]);
  if (type === "azure" && !provider.base_url)
    gaps.push([`The provider \`${name}\` has no base_url.`, "Add `base_url: https://NAME.openai.azure.com`."]);
  return gaps;
}
